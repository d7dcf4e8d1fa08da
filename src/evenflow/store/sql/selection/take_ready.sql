-- The first tasks of these lanes, so many of each, with how they stand.
with taken as (
    delete from ready_task r
    using unnest(%(lanes)s::bigint[], %(counts)s::int[]) as c (lane_id, count)
    cross join lateral (
        select x.task_index, x.map_index from ready_task x
        where x.lane_id = c.lane_id
        order by x.task_index, x.map_index
        limit c.count
    ) as picked
    where r.lane_id = c.lane_id and r.task_index = picked.task_index and r.map_index = picked.map_index
    returning r.lane_id, r.task_index, r.map_index
)
select x.lane_id, x.task_index, x.map_index, t.state::text, t.epoch, t.try_number
from taken x
join lane l using (lane_id)
join task_instance t on t.run_key = l.run_key and t.task_index = x.task_index and t.map_index = x.map_index
