-- Limits of runs that ended under a scheduler that had not the executor's lock: its wakes name some of them.
delete from concurrency_limit
where run_key in (
    select l.run_key
    from concurrency_limit l
    join dag_run r using (run_key)
    where l.limit_id = any(%(limits)s::bigint[]) and l.run_key <> 0 and r.state in ('success', 'failed')
)
