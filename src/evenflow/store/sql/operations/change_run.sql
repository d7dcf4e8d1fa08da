-- A run that an operator touched. One that had finished waits to go on, and nothing of how it ended remains.
update dag_run
set clears = clears + 1, state = %(state)s::run_state,
    started_at = case when %(revived)s then null else started_at end,
    ended_at = case when %(revived)s then null else ended_at end,
    reason = case when %(revived)s then null else coalesce(%(reason)s, reason) end,
    cancelled_by = case when %(revived)s then null else cancelled_by end
where run_key = %(run_key)s
