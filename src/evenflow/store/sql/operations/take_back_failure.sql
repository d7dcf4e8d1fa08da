-- A success that a person had marked as failed is a success again. No row: the run was not one of these.
update dag_run
set clears = clears + 1, state = %(state)s::run_state, reason = null, marked_failed_by = null
where run_key = %(run_key)s and state = %(was)s::run_state and marked_failed_by is not null
returning run_key
