-- Instances of mapped tasks that have a row or a counter of their own, under the lock of their runs.
select k.run_key, k.task_index, x.map_index, x.state::text, coalesce(x.epoch, 0) as epoch,
    coalesce(x.try_number, 0::smallint) as try_number,
       x.total, coalesce(x.success, 0) as success, coalesce(x.failed, 0) as failed, coalesce(x.skipped, 0) as skipped
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[]) as k (run_key, task_index)
cross join lateral (
    select map_index, t.state, t.epoch, t.try_number, c.total, c.success, c.failed, c.skipped
    from (select * from task_instance where run_key = k.run_key and task_index = k.task_index and map_index >= 0) as t
    full join (select * from upstream_counter where run_key = k.run_key and task_index = k.task_index and map_index >= 0) as c
              using (map_index)
) as x
