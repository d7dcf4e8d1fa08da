-- What of a run has not finished, and how many of its leaves failed, computed from its task instances and the mapped ones without a row.
with counted as (
    select task_index, count(*) as n,
           count(*) filter (where state not in ('success', 'failed', 'skipped', 'upstream_failed', 'removed')) as unfinished,
           count(*) filter (where state in ('failed', 'upstream_failed')) as failed
    from task_instance
    where run_key = %(run_key)s
    group by task_index
), rest as (
    select m.task_index, m.rest, m.length - coalesce(c.n, 0) as n
    from mapped_task m
    left join counted c using (task_index)
    where m.run_key = %(run_key)s
)
update dag_run
set unfinished = (select coalesce(sum(unfinished), 0) from counted)
                 + (select coalesce(sum(n), 0) from rest where rest not in ('success', 'failed', 'skipped', 'upstream_failed')),
    failed_leaves = (select coalesce(sum(failed), 0) from counted where task_index = any(%(leaves)s::int[]))
                    + (select coalesce(sum(n), 0) from rest where rest in ('failed', 'upstream_failed') and task_index = any(%(leaves)s::int[]))
where run_key = %(run_key)s
