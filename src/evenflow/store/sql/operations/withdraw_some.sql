-- Returns that an operator ends leave their lanes for their clean-up. Under the executor's lock.
with gone as (
    delete from ready_task r
    using lane l, unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
    where l.run_key = %(run_key)s and r.lane_id = l.lane_id and r.task_index = x.task_index and r.map_index = x.map_index
    returning r.lane_id
)
update lane l set ready = l.ready - g.n
from (select lane_id, count(*)::int as n from gone group by lane_id) as g
where l.lane_id = g.lane_id
