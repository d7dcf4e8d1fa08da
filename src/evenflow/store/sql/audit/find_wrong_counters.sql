-- Counters that are not what their upstreams' states say. The untouched instances of a cancelled run count nowhere: what is downstream of
-- them was cancelled at the same time.
with live as materialized (
    select run_key, dag_id, run_id, version_key from dag_run where state = 'running'
), spec as materialized (
    select v.version_key, (s.position - 1)::int as task_index, s.task ? 'mapping' as mapped, coalesce(s.task -> 'upstream', '[]') as upstream
    from dag_version v
    cross join lateral jsonb_array_elements(v.spec -> 'tasks') with ordinality as s (task, position)
    where v.version_key in (select version_key from live)
), edge as materialized (
    select s.version_key, s.task_index, u.task::int as upstream
    from spec s
    cross join lateral jsonb_array_elements_text(s.upstream) as u (task)
    join spec p on p.version_key = s.version_key and p.task_index = u.task::int
    where jsonb_array_length(s.upstream) > 1 or p.mapped
), ended as (
    select run_key, t.task_index, count(*) filter (where t.state = 'success') as success,
           count(*) filter (where t.state in ('failed', 'upstream_failed')) as failed,
           count(*) filter (where t.state in ('skipped', 'removed')) as skipped
    from live
    join task_instance t using (run_key)
    group by run_key, t.task_index
), expected as (
    select l.run_key, e.task_index, sum(coalesce(m.length, 1)) as total, coalesce(sum(n.success), 0) as success,
           coalesce(sum(n.failed), 0) as failed, coalesce(sum(n.skipped), 0) as skipped
    from live l
    join edge e using (version_key)
    left join ended n on n.run_key = l.run_key and n.task_index = e.upstream
    left join mapped_task m on m.run_key = l.run_key and m.task_index = e.upstream
    group by l.run_key, e.task_index
), counter as (
    select c.* from live join upstream_counter c using (run_key) where c.map_index = -1
)
select concat(l.dag_id, '/', l.run_id, ' ', t.task_id) as object,
       concat(c.success, ' success, ', c.failed, ' failed, ', c.skipped, ' skipped of ', c.total) as found,
       concat(x.success, ' success, ', x.failed, ' failed, ', x.skipped, ' skipped of ', x.total) as expected
from expected x
full join counter c using (run_key, task_index)
join live l using (run_key)
join task t using (version_key, task_index)
where (x.total, x.success, x.failed, x.skipped) is distinct from (c.total, c.success, c.failed, c.skipped)
limit %(most)s
