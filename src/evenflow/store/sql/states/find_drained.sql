-- What drains and has nothing in flight, or is out of time, and then whether anything is in flight. A look ends at the first try in
-- flight; deferrals, of which there may be many, are looked at only when nothing else is. It delays no other transaction; with the
-- executor's lock it is also right a moment later.
select kind, name, in_flight
from (
    select s.kind, s.name, s.deadline <= now() as late, case
        when case s.kind
            when 'pool' then exists (
                select from concurrency_limit l
                where l.run_key = 0 and l.kind = 'pool' and l.name = s.name
                  and l.used > coalesce((select sum(released) from wake w where w.limit_id = l.limit_id), 0))
            when 'queue' then exists (select from dispatch d where d.queue = s.name and d.worker_id is null and d.sent_at is null)
              or exists (select from dispatch d where d.queue = s.name and d.worker_id is null and d.sent_at is not null)
              or exists (select from dispatch d where d.queue = s.name and d.worker_id is not null)
            when 'worker' then exists (
                select from service v join dispatch d on d.worker_id = v.service_id where v.kind = 'worker' and v.name = s.name)
            when 'dag' then exists (select from dag_run r where r.state = 'running' and r.dag_id = s.name)
            else exists (select from dag_run r where r.state = 'running')
              or exists (select from dag_run r where r.state = 'queued' and r.dag_id = 'evenflow_callbacks')
        end then true
        when s.kind in ('pool', 'queue') then exists (
            select from deferral f
            cross join lateral (select version_key from dag_run where dag_run.run_key = f.run_key offset 0) as r
            cross join lateral (
                select case s.kind
                    when 'pool' then coalesce(v.spec -> 'tasks' -> f.task_index ->> 'pool', 'default_pool')
                    else coalesce(v.spec -> 'tasks' -> f.task_index ->> 'queue', 'default')
                end as name
                from dag_version v
                where v.version_key = r.version_key
                offset 0
            ) as p
            where p.name = s.name
              and not exists (
              select from task_instance i
              join dispatch d using (epoch)
              where i.run_key = f.run_key and i.task_index = f.task_index and i.map_index = f.map_index
              offset 0))
        else false
    end as in_flight
    from service_state s
    where s.state = 'draining'
    offset 0
) as d
where late or not in_flight
