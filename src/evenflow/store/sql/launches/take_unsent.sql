-- Tries of these queues that were not sent to their executor yet, resumes first, then by priority, are sent by this caller: written
-- down before it is done, so that what is lost with it is sent again (launches/take_overdue). What may not be claimed is not sent:
-- it is frozen, and there may be nothing but resumes. SKIP LOCKED: another launcher has those.
with closed as materialized (
    select kind, name from service_state where state = 'frozen' and kind <> 'worker'
), chosen as materialized (
    select d.epoch
    from unnest(%(queues)s::text[]) as q (queue)
    cross join (values (0), (1)) as c (class)
    cross join lateral (
        select epoch, class, priority, xact
        from dispatch d
        where d.queue = q.queue and d.class = c.class and worker_id is null and sent_at is null
          and not {{is_frozen}}
        order by {{tries_in_order}}
        limit %(most)s
        for no key update skip locked
    ) as d
    order by {{tries_in_order}}
    limit %(most)s
), sent as (
    update dispatch d set sent_at = now(), sends = coalesce(d.sends, 0) + 1
    where d.epoch = any(array(select epoch from chosen))
    returning d.*
)
select {{sent_try}}
from sent d
join dag_run r using (run_key)
join task k using (version_key, task_index)
order by {{tries_in_order}}
