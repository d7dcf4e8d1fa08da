-- Task instances whose try has ended, so that they wait no more and have not returned: their triggers are void. Under the locks of their runs.
delete from deferral f
using unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[]) as k (run_key, task_index, map_index)
where f.run_key = k.run_key and f.task_index = k.task_index and f.map_index = k.map_index
