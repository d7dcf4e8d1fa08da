-- The tries of a run that workers have, except those of spared tasks, those that are being killed already, and clean-ups.
select d.epoch
from task_instance t
cross join lateral (select epoch from dispatch where epoch = t.epoch and worker_id is not null and not kill offset 0) as d
left join lateral (
    select purpose from deferral where run_key = t.run_key and task_index = t.task_index and map_index = t.map_index offset 0
) as f on true
where t.run_key = %(run_key)s and t.state in ('queued', 'running') and t.task_index <> all(%(spared)s::int[])
    and f.purpose is distinct from 'clean_up'
