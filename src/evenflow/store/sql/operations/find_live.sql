-- The tries of these tasks of a run that are queued or running. A map index of null means all instances. Through the task instances, for
-- dispatches are not found by run. Locked NO KEY UPDATE: no worker claims one after the look, and one that was just being claimed is its
-- worker's. Claims pass over what is locked, reports and pushes do not mind.
select t.task_index, t.map_index, t.epoch, d.worker_id, d.holds, d.pool_slots, d.class = 0 as returns, f.purpose
from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
join task_instance t on t.run_key = %(run_key)s and t.task_index = x.task_index and (x.map_index is null or t.map_index = x.map_index)
join dispatch d on d.epoch = t.epoch
left join deferral f on d.class = 0 and f.run_key = t.run_key and f.task_index = t.task_index and f.map_index = t.map_index
where t.state = any(%(states)s::task_state[])
for no key update of d
