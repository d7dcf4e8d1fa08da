-- How the task instances of these tasks of a run stand: those with a row, and those of mapped tasks that have none. The parts are
-- laid upon each other, not joined: without statistics, and without hash joins, a join would compare each task with all others.
with parts as (
    select task_index, null::int as length, null::task_state as virtual_state, count(*)::int as n, count(*)
        filter (where state = 'success')::int as success,
           count(*) filter (where state in ('failed', 'upstream_failed'))::int as failed,
           count(*) filter (where state in ('skipped', 'removed'))::int as skipped
    from task_instance
    where run_key = %(run_key)s and task_index = any(%(tasks)s::int[])
    group by task_index
    union all
    select task_index, length, virtual_state, 0, 0, 0, 0 from mapped_task where run_key = %(run_key)s
        and task_index = any(%(tasks)s::int[])
    union all
    select task_index, null, null, 0, 0, 0, 0 from unnest(%(tasks)s::int[]) as k (task_index)
), laid_together as (
    select task_index, coalesce(max(length), 1) as total, max(virtual_state) as virtual_state, max(n) as n, max(success) as success,
        max(failed) as failed,
           max(skipped) as skipped
    from parts
    group by task_index
)
select task_index, total,
       success + case when virtual_state = 'success' then total - n else 0 end as success,
       failed + case when virtual_state in ('failed', 'upstream_failed') then total - n else 0 end as failed,
       skipped + case when virtual_state = 'skipped' then total - n else 0 end as skipped
from laid_together
