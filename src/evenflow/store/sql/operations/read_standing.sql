-- How the task instances of these tasks of a run stand: those with a row, and those of mapped tasks that have none.
with counted as (
    select task_index, count(*)::int as n, count(*) filter (where state = 'success')::int as success,
           count(*) filter (where state in ('failed', 'upstream_failed'))::int as failed,
           count(*) filter (where state in ('skipped', 'removed'))::int as skipped
    from task_instance
    where run_key = %(run_key)s and task_index = any(%(tasks)s::int[])
    group by task_index
), rest as (
    select m.task_index, m.length, m.rest, m.length - coalesce(c.n, 0) as n
    from mapped_task m
    left join counted c using (task_index)
    where m.run_key = %(run_key)s and m.task_index = any(%(tasks)s::int[])
)
select k.task_index, coalesce(r.length, 1) as total,
       coalesce(c.success, 0) + case when r.rest = 'success' then r.n else 0 end as success,
       coalesce(c.failed, 0) + case when r.rest in ('failed', 'upstream_failed') then r.n else 0 end as failed,
       coalesce(c.skipped, 0) + case when r.rest = 'skipped' then r.n else 0 end as skipped
from unnest(%(tasks)s::int[]) as k (task_index)
left join counted c using (task_index)
left join rest r using (task_index)
