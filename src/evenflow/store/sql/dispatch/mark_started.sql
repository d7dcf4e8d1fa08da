-- Marks tries whose worker says that their process runs, so that no report decides alone whether it hangs. A start that is not
-- known (its report was refused, set aside, or lost) is reported now, once. Tries and instances are looked up one by one, whatever
-- the plan was made for. NO KEY UPDATE, SKIP LOCKED: a try that is being killed or ended right now is met again by the next beat.
with running as materialized (
    select epoch, run_key, task_index, map_index from dispatch
    where epoch = any(%(epochs)s::bigint[]) and worker_id = %(service_id)s and not started
    for no key update skip locked
), marked as (
    update dispatch set started = true where epoch = any(array(select epoch from running))
)
insert into report (run_key, kind, epoch)
select d.run_key, 'started', d.epoch
from running d
cross join lateral (
    select state from task_instance i
    where i.run_key = d.run_key and i.task_index = d.task_index and i.map_index = d.map_index and i.epoch = d.epoch
    offset 0) as t
where t.state = 'queued' and (select true from report r where r.run_key = d.run_key and r.epoch = d.epoch limit 1) is null
returning epoch
