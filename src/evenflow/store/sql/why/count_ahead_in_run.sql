-- How many ready tasks of the same run come before a lane, wait for this limit of the run and for no other. A pool that is kept for
-- others has no room.
with released as materialized (
    select limit_id, sum(released)::int as n from wake group by limit_id
)
select coalesce(sum(ready), 0)::int as ahead
from (
    select l.ready
    from lane l
    join limit_class n using (class_id)
    where l.run_key = %(run_key)s and %(limit_id)s = any(l.locals) and n.pool_limit <> all(%(kept)s::bigint[])
      and l.order_key < %(order_key)s::bytea
      and not exists (
          select from unnest(array[n.executor_limit, n.task_limit] || l.locals) as o (limit_id)
          join concurrency_limit c on c.limit_id = o.limit_id
          left join released w on w.limit_id = o.limit_id
          where o.limit_id <> %(limit_id)s and c.capacity - c.used + coalesce(w.n, 0) < 1
      )
      and not exists (
          select from concurrency_limit c
          left join released w on w.limit_id = c.limit_id
          where c.limit_id = n.pool_limit and c.capacity - c.used + coalesce(w.n, 0) < n.weight
      )
    limit %(counted)s
) as before
