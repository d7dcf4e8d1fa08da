-- Queues of parked lanes that a wake-up was lost for: their limit has room, none waits to be folded, and no better lane of the base
-- with that limit is woken. Looks at a number of queues after a given one, skipping through the index from one to the next; answers
-- the last of them too when there may be more.
with recursive queue as (
    (select parked_on, base_id, 1 as n
     from lane
     where (parked_on, base_id) > (%(after_limit)s::bigint, %(after_queue)s::int)
     order by parked_on, base_id
     limit 1)
    union all
    select x.parked_on, x.base_id, q.n + 1
    from queue q
    cross join lateral (
        select parked_on, base_id from lane
        where (parked_on, base_id) > (q.parked_on, q.base_id)
        order by parked_on, base_id
        limit 1
    ) as x
    where q.n < %(most)s
), judged as (
    select q.parked_on, q.base_id, q.n,
           l.capacity > l.used and not exists (select from wake w where w.limit_id = q.parked_on) and not exists (
               select from lane o
               join limit_class m using (class_id)
               where o.parked_on = -2 and o.base_id = q.base_id and (o.locals @> array[q.parked_on] or m.task_limit = q.parked_on)
                 and o.order_key < b.order_key
           ) as lost
    from queue q
    left join concurrency_limit l on l.limit_id = q.parked_on
    cross join lateral (
        select * from lane
        where parked_on = q.parked_on and base_id = q.base_id
        order by order_key
        limit 1
    ) as b
)
select parked_on, base_id, coalesce(lost, false) as lost, n = %(most)s as last from judged where lost or n = %(most)s
