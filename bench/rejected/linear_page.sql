-- The next page of ready tasks in order, with the room that each of its limits has.
select r.run_rank, r.rank, r.run_after, r.lane_id, r.task_index, r.map_index, r.weight, r.limits, f.free
from (
    select * from ready
    where (run_rank, rank, run_after, lane_id, task_index, map_index)
        > (%(run_rank)s::int, %(rank)s::int, %(run_after)s::timestamptz, %(lane_id)s::bigint, %(task_index)s::int, %(map_index)s::int)
    order by run_rank, rank, run_after, lane_id, task_index, map_index
    limit %(page)s
) as r
cross join lateral (
    select array_agg(l.capacity - l.used order by k.n) as free
    from unnest(r.limits) with ordinality as k (limit_id, n)
    join concurrency_limit l using (limit_id)
) as f
order by r.run_rank, r.rank, r.run_after, r.lane_id, r.task_index, r.map_index
