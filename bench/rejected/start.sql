-- What was selected runs: it is no longer ready, its lane has fewer, its limits are used.
with started as (
    delete from ready r
    using unnest(%(lanes)s::bigint[], %(tasks)s::int[], %(maps)s::int[]) as c (lane_id, task_index, map_index)
    where r.lane_id = c.lane_id and r.task_index = c.task_index and r.map_index = c.map_index
    returning r.lane_id, r.limits, r.weight
), held as (
    insert into holding (limits, weight) select limits, weight from started
), fewer as (
    update lane l set ready = l.ready - c.n
    from (select lane_id, count(*)::int as n from started group by lane_id) as c
    where l.lane_id = c.lane_id
)
update concurrency_limit l set used = l.used + c.n
from (
    select k.limit_id, sum(case k.n when 1 then weight else 1 end)::int as n
    from started, unnest(limits) with ordinality as k (limit_id, n)
    group by k.limit_id
) as c
where l.limit_id = c.limit_id
