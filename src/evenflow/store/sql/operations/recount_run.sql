-- What of a run has not finished, how many of its leaves failed, and whether something is as a cancel left it, computed from its
-- task instances and the virtual ones. The two are laid upon each other, as in operations/count_ended.
with parts as (
    select task_index, null::int as length, null::task_state as virtual_state, null::boolean as virtual_left, count(*) as n,
           count(*) filter (where state not in {{finished}}) as unfinished,
           count(*) filter (where state in ('failed', 'upstream_failed')) as failed,
           count(*) filter (where state in ('failed', 'skipped') and ended_by = %(cancel)s) as left_over
    from task_instance
    where run_key = %(run_key)s
    group by task_index
    union all
    select task_index, length, virtual_state, virtual_state = 'skipped' and virtual_ended_by = %(cancel)s, 0, 0, 0, 0
    from mapped_task
    where run_key = %(run_key)s
), counted as (
    select task_index, max(virtual_state) as virtual_state, bool_or(virtual_left) as virtual_left,
        max(length) - max(n) as untouched, max(unfinished) as unfinished,
           max(failed) as failed, max(left_over) as left_over
    from parts
    group by task_index
), summed as (
    select sum(unfinished + case when virtual_state not in {{finished_virtually}} then untouched else 0 end) as unfinished,
           sum(failed + case when virtual_state in ('failed', 'upstream_failed') then untouched else 0 end)
               filter (where task_index in (select unnest(%(leaves)s::int[]))) as failed_leaves,
           bool_or(left_over > 0 or virtual_left and untouched > 0) as interrupted
    from counted
)
update dag_run r
set unfinished = coalesce(s.unfinished, 0), failed_leaves = coalesce(s.failed_leaves, 0),
    interrupted = coalesce(s.interrupted, false)
from summed s
where r.run_key = %(run_key)s
returning r.unfinished, r.failed_leaves, r.interrupted
