-- The best lanes parked on these limits, per limit and base. The bases are found by skipping through the index.
with recursive queue as (
    select k.limit_id, n.base_id
    from unnest(%(limits)s::bigint[]) as k (limit_id)
    cross join lateral (select base_id from lane where parked_on = k.limit_id order by base_id limit 1) as n
    union all
    select q.limit_id, n.base_id
    from queue q
    cross join lateral (select base_id from lane where parked_on = q.limit_id and base_id > q.base_id order by base_id limit 1) as n
)
select {{stored_lane}}
from queue q
cross join lateral (
    select * from lane
    where parked_on = q.limit_id and base_id = q.base_id
    order by order_key
    limit greatest(%(least)s, least(%(most)s, %(lanes)s / (select count(*) from queue)))
) as l
