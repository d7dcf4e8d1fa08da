-- The first lanes of all in the strict order, those of paused DAGs and of runs in quarantine left out: the best of each queue that
-- lanes wait in. Queues are found by skipping through the index, up to a number of them.
with recursive queue as (
    (select parked_on, base_id from lane order by parked_on, base_id limit 1)
    union all
    select n.parked_on, n.base_id
    from queue q
    cross join lateral (
        select parked_on, base_id from lane where (parked_on, base_id) > (q.parked_on, q.base_id) order by parked_on, base_id
        limit 1
    ) as n
)
select {{stored_lane}}
from (select * from queue limit %(groups)s) as q
cross join lateral (
    select * from lane
    where parked_on = q.parked_on and base_id = q.base_id
      and (%(scope)s::jsonb is null or exists (
          select from dag_run r where r.run_key = lane.run_key and r.dag_id in (select dags_in_scope(%(scope)s::jsonb))))
    order by order_key
    limit %(limit)s
) as l
where q.parked_on not in (-1, -3)
order by l.order_key
limit %(limit)s
