-- As selection/read_heads where very many limit classes have open lanes: the best of every base, whichever task's limit they have,
-- so that a turn costs the same however many such limits there are. Those of a full one are parked when they are looked at.
with recursive occupied as (
    select k.parked_on, n.base_id
    from (values (0::bigint), (-2)) as k (parked_on)
    cross join lateral (select base_id from lane where parked_on = k.parked_on order by base_id limit 1) as n
    union all
    select o.parked_on, n.base_id
    from occupied o
    cross join lateral (select base_id from lane where parked_on = o.parked_on and base_id > o.base_id order by base_id
        limit 1) as n
), given as materialized (
    select * from unnest(%(limits)s::bigint[], %(released)s::int[]) as g (limit_id, n)
), eligible as materialized (
    select o.parked_on, o.base_id
    from occupied o
    join limit_class n on n.class_id = o.base_id
    join concurrency_limit p on p.limit_id = n.pool_limit
    join concurrency_limit e on e.limit_id = n.executor_limit
    left join given gp on gp.limit_id = p.limit_id
    left join given ge on ge.limit_id = e.limit_id
    where {{may_start_one}}
)
select {{stored_lane}}
from eligible e
cross join lateral (
    select * from lane
    where parked_on = e.parked_on and base_id = e.base_id
    order by order_key
    limit greatest(%(least)s, least(%(most)s, %(lanes)s / (select count(*) from eligible)))
) as l
