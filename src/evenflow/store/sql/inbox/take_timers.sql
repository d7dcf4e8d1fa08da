-- The due timers of these runs, with the task instance that each is about; one whose epoch has passed is void.
with taken as (
    delete from timer
    where run_key = any(%(run_keys)s::bigint[]) and due_at <= now()
    returning kind, run_key, task_index, map_index, epoch, due_at
)
select x.kind, x.run_key, x.task_index, x.map_index, t.state::text, t.epoch, t.try_number,
       extract(epoch from x.due_at)::float8 as due_at_s
from taken x
join task_instance t using (run_key, task_index, map_index, epoch)
