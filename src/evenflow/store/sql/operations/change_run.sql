-- A run that a person has changed. A run that had finished waits to continue, and nothing of how it ended remains.
update dag_run
set clears = clears + 1, state = %(state)s::run_state,
    started_at = case when not %(revived)s then started_at end,
    ended_at = case when not %(revived)s then ended_at end,
    reason = case when not %(revived)s then reason end,
    marked_failed_by = case when not %(revived)s then marked_failed_by end,
    cancelled_by = case when not %(revived)s then cancelled_by end
where run_key = %(run_key)s
