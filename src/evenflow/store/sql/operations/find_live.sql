-- The tries of these tasks of a run that are queued or running. A map index of null means all instances. Through the task
-- instances, for dispatches are not found by run. Locked NO KEY UPDATE: no worker claims one after the look, and one that was just
-- being claimed is its worker's. Claims pass over what is locked, reports and pushes do not mind.
select t.task_index, t.map_index, t.epoch, d.worker_id, d.holds, d.pool_slots, d.class = 0 as resumes, f.purpose
from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
cross join lateral (
    select task_index, map_index, epoch, state from task_instance
    where run_key = %(run_key)s and task_index = x.task_index
      and map_index between coalesce(x.map_index, -1) and coalesce(x.map_index, 2147483647)
    offset 0
) as t
cross join lateral (select worker_id, holds, pool_slots, class from dispatch where epoch = t.epoch offset 0 for no key update) as d
left join lateral (
    select purpose from deferral where run_key = %(run_key)s and task_index = t.task_index and map_index = t.map_index offset 0
) as f on d.class = 0
where t.state = any(%(states)s::task_state[])
