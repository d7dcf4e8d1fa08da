-- The instances of these tasks of a run that are deferred, or have resumed and wait in a lane. A map index of null means all
-- instances. Found through what is deferred of the run, which is little.
select f.run_key, f.task_index, f.map_index
from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
cross join lateral (
    select run_key, task_index, map_index from deferral
    where run_key = %(run_key)s and task_index = x.task_index
      and map_index between coalesce(x.map_index, -1) and coalesce(x.map_index, 2147483647)
    offset 0
) as f
cross join lateral (
    select state from task_instance where run_key = f.run_key and task_index = f.task_index and map_index = f.map_index offset 0
) as t
where t.state in ('deferred', 'scheduled') and t.state = any(%(states)s::task_state[])
