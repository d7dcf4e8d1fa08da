-- The first ready tasks of a lane.
select lane_id, task_index, map_index from ready where lane_id = %(lane_id)s order by task_index, map_index limit %(count)s
