-- Runs whose count of unfinished task instances or failed leaves is wrong. A finished run has nothing unfinished; its leaves are not
-- counted again.
with live as materialized (
    select run_key, version_key, unfinished, failed_leaves from dag_run where state = 'running'
), inner_task as materialized (
    select distinct v.version_key, u.task::int as task_index
    from dag_version v
    cross join lateral jsonb_array_elements(v.spec -> 'tasks') as s (task)
    cross join lateral jsonb_array_elements_text(coalesce(s.task -> 'upstream', '[]')) as u (task)
    where v.version_key in (select version_key from live)
), counted as (
    select run_key,
           count(*) filter (where t.state not in ('success', 'failed', 'skipped', 'upstream_failed', 'removed')) as unfinished,
           count(*) filter (where t.state in ('failed', 'upstream_failed') and i.task_index is null) as failed_leaves
    from live
    join task_instance t using (run_key)
    left join inner_task i using (version_key, task_index)
    group by run_key
), untouched as (
    select m.run_key, sum(m.length - (select count(*) from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index)) as n
    from live
    join mapped_task m using (run_key)
    where m.rest = 'scheduled'
    group by m.run_key
), compared as (
    select run_key, l.unfinished, l.failed_leaves, coalesce(c.unfinished, 0) + coalesce(u.n, 0) as expected,
           coalesce(c.failed_leaves, 0) as expected_leaves
    from live l
    left join counted c using (run_key)
    left join untouched u using (run_key)
    union all
    select run_key, unfinished, failed_leaves, 0, failed_leaves from dag_run where state in ('success', 'failed') and unfinished <> 0
)
select concat(r.dag_id, '/', r.run_id) as object, concat(c.unfinished, ' unfinished, ', c.failed_leaves, ' failed leaves') as found,
       concat(c.expected, ' unfinished, ', c.expected_leaves, ' failed leaves') as expected
from compared c
join dag_run r using (run_key)
where (c.unfinished, c.failed_leaves) <> (c.expected, c.expected_leaves)
limit %(most)s
