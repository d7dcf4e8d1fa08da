-- The instances of these mapped tasks of a run that have a row.
select task_index, map_index, state::text
from task_instance
where run_key = %(run_key)s and task_index = any(%(tasks)s::int[]) and map_index >= 0
