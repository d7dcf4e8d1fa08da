-- Queued runs become running. One that was cleared knows what of it has not finished. There is no join, which would read all runs
-- for each of these where the planner thinks that there are few; for the same reason the state is compared as text, without the
-- index of queued runs.
update dag_run
set state = %(state)s::run_state, started_at = now(),
    unfinished = case when clears = 0 then (%(unfinished)s::int[])[array_position(%(run_keys)s::bigint[], run_key)]
        else unfinished end,
    slot_limit = nullif((%(slots)s::bigint[])[array_position(%(run_keys)s::bigint[], run_key)], 0)
where run_key = any(%(run_keys)s::bigint[]) and state::text = %(was)s
