-- The due timers of these runs, with the task instance that each is about; one whose epoch has passed is void. A timeout of a run is about
-- no instance; its epoch is the microsecond in which the run started, so one of before a clear is void too;
-- a deadline is void when the run has ended.
with taken as (
    delete from timer
    where run_key = any(%(run_keys)s::bigint[]) and due_at <= now() and not held
    returning kind, run_key, task_index, map_index, epoch, due_at
)
select x.kind, x.run_key, x.task_index, x.map_index, t.state::text, t.epoch, t.try_number,
       extract(epoch from x.due_at)::float8 as due_at_s
from taken x
left join task_instance t using (run_key, task_index, map_index, epoch)
where t.run_key is not null
   or x.kind = 'deadline' and exists (select from dag_run r where r.run_key = x.run_key and r.state in ('queued', 'running'))
   or x.kind = 'run_timeout' and exists (
       select from dag_run r
       where r.run_key = x.run_key and r.state = 'running' and (extract(epoch from r.started_at) * 1e6)::bigint = x.epoch)
