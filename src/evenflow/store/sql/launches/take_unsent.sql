-- Tries of these queues that were not sent to their executor yet, resumes first, then by priority, are sent by this caller: written down
-- before it is done, so that what is lost with it is sent again (launches/take_overdue). What may not be claimed is not sent: it is frozen, and
-- there may be nothing but resumes. SKIP LOCKED: another launcher has those.
with closed as materialized (
    select kind, name from service_state where state = 'frozen' and kind <> 'worker'
), chosen as materialized (
    select d.epoch
    from unnest(%(queues)s::text[]) as q (queue)
    cross join (values (0), (1)) as c (class)
    cross join lateral (
        select epoch, class, priority
        from dispatch
        where dispatch.queue = q.queue and dispatch.class = c.class and worker_id is null and sent_at is null
          and not exists (
              select from closed f
              where f.kind = 'system' or f.kind = 'queue' and f.name = q.queue
                 or f.kind = 'dag' and f.name = (select dag_id from dag_run where dag_run.run_key = dispatch.run_key)
                 or f.kind = 'pool' and f.name = (select name from concurrency_limit where limit_id = dispatch.holds[1]))
        order by priority desc, xact, epoch
        limit %(most)s
        for no key update skip locked
    ) as d
    order by d.class, d.priority desc, d.epoch
    limit %(most)s
), sent as (
    update dispatch d set sent_at = now(), sends = coalesce(d.sends, 0) + 1
    where d.epoch = any(array(select epoch from chosen))
    returning d.*
)
select d.epoch, d.sends, d.queue, d.class = 0 as is_resume, d.priority, r.dag_id, r.run_id, k.task_id, k.operator, d.map_index, d.try_number
from sent d
join dag_run r using (run_key)
join task k using (version_key, task_index)
order by d.class, d.priority desc, d.epoch
