-- Counters that are not what their upstreams' states say. Those of a task in a mapped group count at map index -1 the upstreams
-- outside the group, at others those inside it of the same index, once one of these has ended. The gate of a group (behind the
-- tasks, the groups in the order of their first tasks) counts what the group maps over. Of a teardown only setups are counted:
-- everything else that has ended is taken off its total. Inside the groups of a cancelled run nothing is counted any more.
with live as materialized (
    select run_key, dag_id, run_id, version_key, cancelled_by is not null as cancelled from dag_run where state = 'running'
), spec as materialized (
    select v.version_key, (s.position - 1)::int as task_index, s.task ? 'mapping' as mapped,
        coalesce(s.task -> 'upstream', '[]') as upstream,
           s.task #>> '{mapping,kind}' as kind, coalesce(s.task -> 'setup' = 'true', false) as setup,
           coalesce(s.task ->> 'trigger_rule' = 'all_done_setup_success', false) as counts_setups, (
               with recursive around as (
                   select (s.task ->> 'group')::int as position
                   union all
                   select (v.spec -> 'groups' -> a.position ->> 'parent')::int
                   from around a
                   where a.position is not null and not v.spec -> 'groups' -> a.position ? 'mapping'
               )
               select max(a.position) from around a where v.spec -> 'groups' -> a.position ? 'mapping'
           ) as in_group
    from dag_version v
    cross join lateral jsonb_array_elements(v.spec -> 'tasks') with ordinality as s (task, position)
    where v.version_key in (select version_key from live)
), grouped as (
    select v.version_key, s.in_group, v.spec -> 'groups' -> s.in_group as mapped_group, min(s.task_index) as first_task
    from spec s
    join dag_version v using (version_key)
    where s.in_group is not null
    group by v.version_key, s.in_group
), source as (
    select distinct g.version_key, g.in_group, g.first_task, (u.task #>> '{}')::int as upstream
    from grouped g
    cross join lateral jsonb_path_query(g.mapped_group #> '{mapping,inputs}', '$.**.task') as u (task)
), gate as materialized (
    select s.version_key, t.tasks + dense_rank() over (partition by s.version_key order by s.first_task) - 1 as task_index,
        s.upstream,
           count(*) over (partition by s.version_key, s.in_group) > 1 or p.mapped or p.in_group is not null as counted
    from source s
    join (select version_key, count(*)::int as tasks from spec group by version_key) as t using (version_key)
    join spec p on p.version_key = s.version_key and p.task_index = s.upstream
), edge as materialized (
    select s.version_key, s.task_index, u.task::int as upstream,
           s.in_group is not null and s.in_group is not distinct from p.in_group as inside, s.counts_setups
               and not p.setup as taken_off
    from spec s
    cross join lateral jsonb_array_elements_text(s.upstream) as u (task)
    join spec p on p.version_key = s.version_key and p.task_index = u.task::int
    where (jsonb_array_length(s.upstream) > 1 or p.mapped or p.in_group is not null) and s.kind is distinct from 'each'
    union all
    select version_key, task_index, upstream, false, false from gate where counted
), by_index as materialized (
    select version_key, task_index from edge group by version_key, task_index having bool_or(inside) and count(*) > 1
), touched as (
    select c.run_key, c.task_index, c.map_index
    from live l
    join upstream_counter c using (run_key)
    where c.map_index >= 0 and not l.cancelled
    union
    select l.run_key, e.task_index, i.map_index
    from live l
    join by_index b using (version_key)
    join edge e on e.version_key = b.version_key and e.task_index = b.task_index and e.inside
    join mapped_task m on m.run_key = l.run_key and m.task_index = e.upstream
    cross join lateral generate_series(0, m.length - 1) as i (map_index)
    left join task_instance t on t.run_key = l.run_key and t.task_index = e.upstream and t.map_index = i.map_index
    where not l.cancelled
      and (coalesce(t.state, m.virtual_state) in {{finished_virtually}} or t.state = 'removed')
), instance as (
    select run_key, t.task_index, t.state, 1 as n from live join task_instance t using (run_key)
    union all
    select m.run_key, m.task_index, m.virtual_state, m.length - (
               select count(*)::int from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index)
    from live
    join mapped_task m using (run_key)
    where m.virtual_state in {{finished_virtually}}
), ended as (
    select run_key, task_index, coalesce(sum(n) filter (where state = 'success'), 0) as success,
           coalesce(sum(n) filter (where state in ('failed', 'upstream_failed')), 0) as failed,
           coalesce(sum(n) filter (where state in ('skipped', 'removed')), 0) as skipped
    from instance
    group by run_key, task_index
), expected as (
    select l.run_key, e.task_index, -1 as map_index,
           sum(coalesce(m.length, 1)) - coalesce(sum(n.success + n.failed + n.skipped) filter (where e.taken_off), 0) as total,
           coalesce(sum(n.success) filter (where not e.taken_off), 0) as success,
           coalesce(sum(n.failed) filter (where not e.taken_off), 0) as failed,
           coalesce(sum(n.skipped) filter (where not e.taken_off), 0) as skipped
    from live l
    join edge e using (version_key)
    left join ended n on n.run_key = l.run_key and n.task_index = e.upstream
    left join mapped_task m on m.run_key = l.run_key and m.task_index = e.upstream
    where not e.inside
    group by l.run_key, e.task_index
    union all
    select c.run_key, c.task_index, c.map_index,
           count(*) - count(*) filter (where e.taken_off and i.state in {{finished}}),
           count(*) filter (where i.state = 'success' and not e.taken_off),
           count(*) filter (where i.state in ('failed', 'upstream_failed') and not e.taken_off),
           count(*) filter (where i.state in ('skipped', 'removed') and not e.taken_off)
    from live l
    join touched c using (run_key)
    join edge e on e.version_key = l.version_key and e.task_index = c.task_index and e.inside
    left join mapped_task m on m.run_key = c.run_key and m.task_index = e.upstream
    left join task_instance t on t.run_key = c.run_key and t.task_index = e.upstream and t.map_index = c.map_index
    cross join lateral (select coalesce(t.state, nullif(m.virtual_state, 'removed')) as state) as i
    group by c.run_key, c.task_index, c.map_index
), counter as (
    select c.*
    from live l
    join upstream_counter c using (run_key)
    where c.map_index = -1 or not l.cancelled
)
select concat(l.dag_id, '/', l.run_id, ' ', coalesce(t.task_id, 'gate of a mapped group'),
    '[' || nullif(map_index, -1) || ']') as object,
       concat(c.success, ' success, ', c.failed, ' failed, ', c.skipped, ' skipped of ', c.total) as found,
       concat(x.success, ' success, ', x.failed, ' failed, ', x.skipped, ' skipped of ', x.total) as expected
from expected x
full join counter c using (run_key, task_index, map_index)
join live l using (run_key)
left join task t using (version_key, task_index)
where (x.total, x.success, x.failed, x.skipped) is distinct from (c.total, c.success, c.failed, c.skipped)
limit %(most)s
