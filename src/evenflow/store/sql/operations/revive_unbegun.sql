-- A run that ended before it began waits again, as if it were new. No row: it had begun, or has not ended.
update dag_run set state = %(state)s::run_state, ended_at = null, reason = null, cancelled_by = null
where run_key = %(run_key)s and state = %(was)s::run_state and clears = 0 and started_at is null
returning run_key
