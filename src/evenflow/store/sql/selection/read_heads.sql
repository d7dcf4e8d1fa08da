-- The best open and the best woken lanes of every limit class that can start one now, counting what this transaction has released;
-- woken ones also while the task's limit is full. Looks at a limited number of limit classes with such lanes; where there are more
-- their bases are read instead. A limit class whose pool has too few slots is read too where the pool does not backfill. None of
-- closed pools, executors and queues is read.
with given as materialized (
    select * from unnest(%(limits)s::bigint[], %(released)s::int[]) as g (limit_id, n)
), eligible as materialized (
    select o.parked_on, o.class_id
    from (select * from occupied_class limit %(limit_classes)s) as o
    join limit_class n using (class_id)
    join concurrency_limit p on p.limit_id = n.pool_limit
    join concurrency_limit e on e.limit_id = n.executor_limit
    left join concurrency_limit t on t.limit_id = n.task_limit
    left join given gp on gp.limit_id = p.limit_id
    left join given ge on ge.limit_id = e.limit_id
    left join given gt on gt.limit_id = t.limit_id
    where {{may_start_one}}
      and (o.parked_on = -2 or t.limit_id is null or t.capacity - t.used + coalesce(gt.n, 0) >= 1)
)
select {{stored_lane}}
from eligible e
cross join lateral (
    select * from lane
    where parked_on = e.parked_on and parked_on in (0, -2) and class_id = e.class_id
    order by order_key
    limit greatest(%(least)s, least(%(most)s, %(lanes)s / (select count(*) from eligible)))
) as l
