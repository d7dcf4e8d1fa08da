-- Tries that wait for a worker, by queue, with the kind of its executor: how many, counted up to a number, and since when the first
-- of them. No limit holds them back: that is decided before. Frozen tries do not wait for a worker; but tries that were sent to an
-- executor count.
with closed as materialized (
    select kind, name from service_state where state = 'frozen' and kind <> 'worker'
)
select q.queue, sum(c.waiting)::int as waiting, coalesce(extract(epoch from now() - min(c.oldest)), 0)::float8 as oldest_wait,
       coalesce((select kind from queue_executor e where e.queue = q.queue), 'native') as kind
from unnest(%(queues)s::text[]) as q (queue)
cross join (values (0), (1)) as k (class)
cross join lateral (
    select count(*) as waiting, min(created_at) as oldest
    from (
        select created_at
        from dispatch d
        where d.queue = q.queue and d.class = k.class and worker_id is null and sent_at is null
          and not {{is_frozen}}
        order by {{tries_in_order}}
        limit %(most)s
    ) as w
    union all
    select count(*), min(created_at)
    from (
        select created_at from dispatch
        where dispatch.queue = q.queue and dispatch.class = k.class and worker_id is null and sent_at is not null
        limit %(most)s
    ) as w
) as c
group by q.queue
