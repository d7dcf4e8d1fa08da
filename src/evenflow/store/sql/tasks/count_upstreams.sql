-- Adds what finished to the counters of the tasks downstream, one row per (run, task, map index), and answers how they stand.
update upstream_counter c
set total = c.total + d.total, success = c.success + d.success, failed = c.failed + d.failed, skipped = c.skipped + d.skipped
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(total)s::int[], %(success)s::int[], %(failed)s::int[],
            %(skipped)s::int[]) as d (run_key, task_index, map_index, total, success, failed, skipped)
where c.run_key = d.run_key and c.task_index = d.task_index and c.map_index = d.map_index
returning c.run_key, c.task_index, c.map_index, c.total, c.success, c.failed, c.skipped
