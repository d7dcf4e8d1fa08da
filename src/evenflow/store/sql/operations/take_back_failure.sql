-- A run that was a success until somebody said that it had failed is one again. No row: it was not such a run.
update dag_run
set clears = clears + 1, state = %(state)s::run_state, reason = null
where run_key = %(run_key)s and state = %(was)s::run_state and starts_with(reason, %(marked)s)
returning run_key
