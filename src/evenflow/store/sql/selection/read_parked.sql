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
select l.lane_id, l.class_id, l.run_key, l.run_priority, l.priority, l.order_key, l.locals,
       l.ready, l.task_index, l.next_map_index, l.end_map_index, l.parked_on, extract(epoch from l.since)::float8 as since_s, l.tries_before,
       l.exempt
from queue q
cross join lateral (
    select * from lane
    where parked_on = q.limit_id and base_id = q.base_id
    order by order_key
    limit greatest(%(least)s, least(%(most)s, %(lanes)s / (select count(*) from queue)))
) as l
