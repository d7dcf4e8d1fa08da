-- Tries that were sent and stayed unclaimed for this time, doubled with each time that they were sent: only the caller looks after
-- them until that time is over again. The first sent come first. SKIP LOCKED: another launcher has those.
with overdue as materialized (
    select d.epoch
    from unnest(%(queues)s::text[]) as q (queue)
    cross join (values (0), (1)) as c (class)
    cross join lateral (
        select epoch, sent_at, sends
        from dispatch
        where dispatch.queue = q.queue and dispatch.class = c.class and worker_id is null
            and sent_at < now() - make_interval(secs => %(after_s)s)
          and sent_at < now() - make_interval(secs => least(%(after_s)s * 2 ^ (sends - 1), %(most_s)s))
        order by sent_at
        limit %(most)s
        for no key update skip locked
    ) as d
), looked_at as (
    update dispatch d set sent_at = now() where d.epoch = any(array(select epoch from overdue)) returning d.*
)
select {{sent_try}}
from looked_at d
join dag_run r using (run_key)
join task k using (version_key, task_index)
