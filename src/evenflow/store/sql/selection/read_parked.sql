-- The best lanes parked on these limits, per limit and node.
select l.lane_id, l.node_id, l.run_key, l.run_priority, l.priority, (extract(epoch from l.run_after) * 1e6)::bigint as run_after_us, l.locals,
       l.ready, l.task_index, l.next_map_index, l.end_map_index, l.parked_on
from unnest(%(limits)s::bigint[]) as k (limit_id)
cross join lateral (select from lane where parked_on = k.limit_id limit 1) as any_parked
cross join node n
cross join lateral (
    select * from lane
    where parked_on = k.limit_id and node_id = n.node_id
    order by run_priority desc, priority desc, run_after, lane_id
    limit %(heads)s
) as l
