-- A run that was a success until somebody said that it had failed is one again. No row: it was not such a run.
update dag_run
set clears = clears + 1, state = %(state)s::run_state, reason = null, marked_failed_by = null
where run_key = %(run_key)s and state = %(was)s::run_state and marked_failed_by is not null
returning run_key
