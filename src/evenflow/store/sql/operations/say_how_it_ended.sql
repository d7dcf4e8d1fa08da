-- A run that has ended is said to have ended otherwise, or as it did after others of its instances. Its times stay. No row: it has
-- not ended, or had never begun.
update dag_run
set clears = clears + 1, state = %(state)s::run_state, reason = %(reason)s, marked_failed_by = %(marked_by)s,
    cancelled_by = case when %(state)s <> 'success' then cancelled_by end
where run_key = %(run_key)s and state in ('success', 'failed') and (clears > 0 or started_at is not null)
returning run_key
