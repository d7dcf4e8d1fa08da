-- The row that stood for a mapped task until it was expanded.
delete from task_instance t
using unnest(%(run_keys)s::bigint[], %(tasks)s::int[]) as k (run_key, task_index)
where t.run_key = k.run_key and t.task_index = k.task_index and t.map_index = -1
