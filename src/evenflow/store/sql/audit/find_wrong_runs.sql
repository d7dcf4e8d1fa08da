-- Runs whose count of unfinished task instances or failed leaves is wrong. A finished run has nothing unfinished; its leaves are
-- not counted again. Leaves are found as core.graph does: without teardowns, except those that fail the run, as long as anything
-- else is left.
with live as materialized (
    select run_key, version_key, unfinished, failed_leaves from dag_run where state = 'running'
), spec as materialized (
    select v.version_key, (s.position - 1)::int as task_index, coalesce(s.task -> 'upstream', '[]') as upstream,
           coalesce(s.task -> 'teardown' = 'true', false)
               and not coalesce(s.task -> 'on_failure_fail_dagrun' = 'true', false) as ignored
    from dag_version v
    cross join lateral jsonb_array_elements(v.spec -> 'tasks') with ordinality as s (task, position)
    where v.version_key in (select version_key from live)
), decisive as (
    select version_key, bool_or(not ignored) as any from spec group by version_key
), inner_task as materialized (
    select s.version_key, u.task::int as task_index
    from spec s
    join decisive d using (version_key)
    cross join lateral jsonb_array_elements_text(s.upstream) as u (task)
    where not s.ignored or not d.any
    union
    select version_key, task_index from spec join decisive d using (version_key) where ignored and d.any
), counted as (
    select run_key,
           count(*) filter (where t.state not in {{finished}}) as unfinished,
           count(*) filter (where t.state in ('failed', 'upstream_failed') and i.task_index is null) as failed_leaves
    from live
    join task_instance t using (run_key)
    left join inner_task i using (version_key, task_index)
    group by run_key
), untouched as (
    select m.run_key, sum(r.n) filter (where m.virtual_state in ('none', 'scheduled', 'removed')) as n,
           sum(r.n) filter (where m.virtual_state in ('failed', 'upstream_failed') and i.task_index is null) as failed_leaves
    from live
    join mapped_task m using (run_key)
    left join inner_task i using (version_key, task_index)
    cross join lateral (
        select m.length - count(*) as n from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index
    ) as r
    where m.virtual_state not in ('success', 'skipped')
    group by m.run_key
), compared as (
    select run_key, l.unfinished, l.failed_leaves, coalesce(c.unfinished, 0) + coalesce(u.n, 0) as expected,
           coalesce(c.failed_leaves, 0) + coalesce(u.failed_leaves, 0) as expected_leaves
    from live l
    left join counted c using (run_key)
    left join untouched u using (run_key)
    union all
    select run_key, unfinished, failed_leaves, 0, failed_leaves from dag_run where state in ('success', 'failed')
        and unfinished <> 0
)
select concat(r.dag_id, '/', r.run_id) as object, concat(c.unfinished, ' unfinished, ', c.failed_leaves, ' failed leaves') as found,
       concat(c.expected, ' unfinished, ', c.expected_leaves, ' failed leaves') as expected
from compared c
join dag_run r using (run_key)
where (c.unfinished, c.failed_leaves) <> (c.expected, c.expected_leaves)
limit %(most)s
