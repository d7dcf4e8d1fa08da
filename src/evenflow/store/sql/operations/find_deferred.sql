-- The instances of these tasks of a run that are deferred, or have returned and wait in a lane. A map index of null means all instances.
-- Found through what is deferred of the run, which is little.
select f.run_key, f.task_index, f.map_index
from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
join deferral f on f.run_key = %(run_key)s and f.task_index = x.task_index and (x.map_index is null or f.map_index = x.map_index)
join task_instance t on t.run_key = f.run_key and t.task_index = f.task_index and t.map_index = f.map_index
where t.state in ('deferred', 'scheduled') and t.state = any(%(states)s::task_state[])
