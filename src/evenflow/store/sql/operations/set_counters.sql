-- Upstream counters of a run as its task instances have them. Each is looked for by its key, then updated by ctid: only the holder
-- of the run's lock changes them.
with wrong as materialized (
    select u.row, c.total, c.success, c.failed, c.skipped
    from unnest(%(tasks)s::int[], %(total)s::int[], %(success)s::int[], %(failed)s::int[], %(skipped)s::int[])
         as c (task_index, total, success, failed, skipped)
    cross join lateral (
        select ctid as row, total, success, failed, skipped from upstream_counter
        where run_key = %(run_key)s and task_index = c.task_index and map_index = -1
        offset 0
    ) as u
    where (u.total, u.success, u.failed, u.skipped) <> (c.total, c.success, c.failed, c.skipped)
)
update upstream_counter u set total = w.total, success = w.success, failed = w.failed, skipped = w.skipped
from wrong w
where u.ctid = w.row
