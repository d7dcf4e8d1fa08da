-- The due timers of these runs, up to a limit of the oldest of each, with the task instance that each is about; one whose epoch has
-- passed is void. A timeout of a run is about no instance; its epoch is the microsecond in which the run started, so one of before
-- a clear is void too; a deadline is void when the run has ended. Rows are deleted by ctid: only the holder of the run's lock
-- changes or deletes them.
with taken as (
    delete from timer
    where ctid = any(array(
        select x.ctid
        from unnest(%(run_keys)s::bigint[]) as k (run_key)
        cross join lateral (
            select ctid from timer where run_key = k.run_key and due_at <= now() and not held order by due_at limit %(share)s
        ) as x))
    returning kind, run_key, task_index, map_index, epoch, due_at
)
select x.kind, x.run_key, x.task_index, x.map_index, t.state::text, t.epoch, t.try_number,
       extract(epoch from x.due_at)::float8 as due_at_s,
       not (t.run_key is not null
            or x.kind = 'deadline'
                and exists (select from dag_run r where r.run_key = x.run_key and r.state in ('queued', 'running'))
            or x.kind = 'run_timeout' and exists (
                select from dag_run r
                where r.run_key = x.run_key and r.state = 'running'
                    and (extract(epoch from r.started_at) * 1e6)::bigint = x.epoch)) as is_void
from taken x
left join task_instance t using (run_key, task_index, map_index, epoch)
order by x.due_at
