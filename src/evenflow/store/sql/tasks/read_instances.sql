-- State of these task instances, as far as they have a row, under the lock of their runs.
select t.run_key, t.task_index, t.map_index, t.state::text, t.epoch, t.try_number
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[]) as k (run_key, task_index, map_index)
join task_instance t on t.run_key = k.run_key and t.task_index = k.task_index and t.map_index = k.map_index
