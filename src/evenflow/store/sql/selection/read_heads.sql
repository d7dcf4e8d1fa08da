-- The best open lanes of every node that can start one now, what this transaction has released already counted.
select l.lane_id, l.node_id, l.run_key, l.run_priority, l.priority, (extract(epoch from l.run_after) * 1e6)::bigint as run_after_us, l.locals,
       l.ready, l.task_index, l.next_map_index, l.end_map_index, l.parked_on
from node n
join concurrency_limit p on p.limit_id = n.pool_limit
join concurrency_limit e on e.limit_id = n.executor_limit
left join unnest(%(limits)s::bigint[], %(released)s::int[]) as rp (limit_id, n) on rp.limit_id = p.limit_id
left join unnest(%(limits)s::bigint[], %(released)s::int[]) as re (limit_id, n) on re.limit_id = e.limit_id
cross join lateral (
    select * from lane
    where parked_on = 0 and node_id = n.node_id
    order by run_priority desc, priority desc, run_after, lane_id
    limit %(heads)s
) as l
where p.capacity - p.used + coalesce(rp.n, 0) >= n.weight and e.capacity - e.used + coalesce(re.n, 0) >= 1
