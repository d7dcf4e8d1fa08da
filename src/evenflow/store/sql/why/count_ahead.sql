-- How many ready tasks come before a lane, wait for this limit of its limit class and for no other: of limit classes that have the
-- limit and room on their others (a pool that is kept for others has none), in lanes whose limits of their run have room. A lane
-- that is parked on a limit with room waits behind a woken one of its base; the limits that lanes are parked on are found by
-- skipping through the index.
with recursive released as materialized (
    select limit_id, sum(released)::int as n from wake group by limit_id
), parked as (
    (select parked_on from lane order by parked_on limit 1)
    union all
    select (select l.parked_on from lane l where l.parked_on > p.parked_on order by l.parked_on limit 1) from parked p
    where p.parked_on is not null
), line as materialized (
    select p.parked_on
    from (select parked_on from parked where parked_on is not null limit %(counted)s) as p
    left join concurrency_limit c on c.limit_id = p.parked_on
    left join released w on w.limit_id = p.parked_on
    where p.parked_on in (0, -2, %(limit_id)s) or c.capacity - c.used + coalesce(w.n, 0) >= 1
), rival as materialized (
    select n.class_id, n.base_id
    from limit_class n
    join concurrency_limit p on p.limit_id = n.pool_limit
    join concurrency_limit e on e.limit_id = n.executor_limit
    left join concurrency_limit t on t.limit_id = n.task_limit
    left join released wp on wp.limit_id = n.pool_limit
    left join released we on we.limit_id = n.executor_limit
    left join released wt on wt.limit_id = n.task_limit
    where %(limit_id)s in (n.pool_limit, n.executor_limit, n.task_limit)
      and (n.pool_limit = %(limit_id)s
           or p.capacity - p.used + coalesce(wp.n, 0) >= n.weight and n.pool_limit <> all(%(kept)s::bigint[]))
      and (n.executor_limit = %(limit_id)s or e.capacity - e.used + coalesce(we.n, 0) >= 1)
      and (n.task_limit is null or n.task_limit = %(limit_id)s or t.capacity - t.used + coalesce(wt.n, 0) >= 1)
)
select coalesce(sum(ready), 0)::int as ahead
from (
    select b.ready
    from line
    cross join rival
    cross join lateral (
        select ready, locals from lane
        where parked_on = line.parked_on and base_id = rival.base_id and class_id = rival.class_id
            and order_key < %(order_key)s::bytea
        limit %(counted)s
    ) as b
    where not exists (
        select from unnest(b.locals) as o (limit_id)
        join concurrency_limit c on c.limit_id = o.limit_id
        left join released w on w.limit_id = o.limit_id
        where c.capacity - c.used + coalesce(w.n, 0) < 1
    )
    limit %(counted)s
) as before
