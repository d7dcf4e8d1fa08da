-- Ready tasks of lanes.
insert into ready_task (lane_id, task_index, map_index)
select * from unnest(%(lanes)s::bigint[], %(tasks)s::int[], %(maps)s::int[])
