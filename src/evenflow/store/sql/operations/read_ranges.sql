-- The lanes that stand for untouched instances of these tasks.
select lane_id, task_index, next_map_index, end_map_index
from lane
where run_key = %(run_key)s and task_index = any(%(tasks)s::int[]) and next_map_index < end_map_index
