-- Upstream counters of new runs: for the tasks that need one.
insert into upstream_counter (run_key, task_index, total)
select * from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(totals)s::int[])
