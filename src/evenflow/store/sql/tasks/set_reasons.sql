-- Why these task instances ended as they did, and what has ended them.
update task_instance t set reason = c.reason, ended_by = c.ended_by
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(reasons)s::text[], %(enders)s::text[])
    as c (run_key, task_index, map_index, reason, ended_by)
where t.run_key = c.run_key and t.task_index = c.task_index and t.map_index = c.map_index
