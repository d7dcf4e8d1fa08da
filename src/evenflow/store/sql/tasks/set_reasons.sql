-- Why these task instances ended as they did.
update task_instance t set reason = c.reason
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(reasons)s::text[]) as c (run_key, task_index, map_index, reason)
where t.run_key = c.run_key and t.task_index = c.task_index and t.map_index = c.map_index
