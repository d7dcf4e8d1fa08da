-- Upstream counters of a run as its task instances have them.
update upstream_counter u set total = c.total, success = c.success, failed = c.failed, skipped = c.skipped
from unnest(%(tasks)s::int[], %(total)s::int[], %(success)s::int[], %(failed)s::int[], %(skipped)s::int[])
     as c (task_index, total, success, failed, skipped)
where u.run_key = %(run_key)s and u.task_index = c.task_index and u.map_index = -1
  and (u.total, u.success, u.failed, u.skipped) <> (c.total, c.success, c.failed, c.skipped)
