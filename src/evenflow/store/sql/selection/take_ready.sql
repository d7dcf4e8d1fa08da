-- The first tasks of these lanes, up to a number for each, with how they stand. Rows are deleted by ctid: only the holder of the
-- executor's lock deletes them. An instance that is born in this transaction has no row yet: only the caller knows how it stands.
with picked as materialized (
    select c.lane_id, l.run_key, x.task_index, x.map_index, x.ctid as row
    from unnest(%(lanes)s::bigint[], %(counts)s::int[]) as c (lane_id, count)
    cross join lateral (select run_key from lane where lane.lane_id = c.lane_id offset 0) as l
    cross join lateral (
        select task_index, map_index, ctid from ready_task
        where ready_task.lane_id = c.lane_id
        order by task_index, map_index
        limit c.count
    ) as x
), taken as (
    delete from ready_task where ctid = any(array(select row from picked))
)
select p.lane_id, p.task_index, p.map_index, coalesce(t.state::text, 'none') as state, coalesce(t.epoch, 0) as epoch,
       coalesce(t.try_number, 0::smallint) as try_number
from picked p
left join lateral (
    select state, epoch, try_number from task_instance
    where run_key = p.run_key and task_index = p.task_index and map_index = p.map_index
    offset 0
) as t on true
