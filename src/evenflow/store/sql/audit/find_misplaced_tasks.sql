-- Task instances that are scheduled but not in exactly one lane, entries of lanes that are not scheduled, and mapped tasks whose
-- untouched instances are not, each once, in the ranges of their lanes. A run that is being cancelled has lanes only for teardowns
-- that have become ready since. Its scheduled instances are skipped part by part; until that is done, a cancel waits in the inbox.
with live as materialized (
    select run_key, dag_id, run_id, version_key,
           cancelled_by is not null and exists (
               select from report p where p.run_key = r.run_key and p.epoch = 0 and p.kind = 'cancel') as is_ending
    from dag_run r
    where state = 'running'
), waiting as (
    select l.run_key, r.task_index, r.map_index, count(*) as n
    from ready_task r
    left join lane l using (lane_id)
    group by l.run_key, r.task_index, r.map_index
), scheduled as (
    select t.run_key, t.task_index, t.map_index, live.is_ending from live join task_instance t using (run_key)
    where t.state = 'scheduled'
), misplaced as (
    select run_key, task_index, map_index,
           case when s.run_key is null then 'not scheduled'
               else 'scheduled' end || ', in ' || coalesce(w.n, 0) || ' lanes' as found,
           case when s.run_key is null then 'in no lane' else 'in one lane' end as expected
    from scheduled s
    full join waiting w using (run_key, task_index, map_index)
    where s.run_key is null or w.n <> 1 or w.n is null and not s.is_ending
), untouched as (
    select m.run_key, m.task_index, live.is_ending,
           int4multirange(int4range(0, m.length))
               - coalesce(range_agg(int4range(t.map_index, t.map_index, '[]')) filter (where t.map_index is not null),
                   '{}') as instances
    from live
    join mapped_task m using (run_key)
    left join task_instance t on t.run_key = m.run_key and t.task_index = m.task_index and t.map_index >= 0
    where m.virtual_state = 'scheduled'
    group by m.run_key, m.task_index, m.length, live.is_ending
), stood_for as (
    select run_key, task_index, range_agg(int4range(next_map_index, end_map_index)) as instances,
        sum(end_map_index - next_map_index) as n
    from lane
    where task_index is not null and next_map_index < end_map_index
    group by run_key, task_index
), ill_ranged as (
    select run_key, task_index, -1, concat('untouched instances ', coalesce(s.instances, '{}'), ', ', coalesce(s.n, 0), ' times'),
           concat('untouched instances ', coalesce(u.instances, '{}'), ', each once')
    from untouched u
    full join stood_for s using (run_key, task_index)
    where (s.run_key is not null or u.is_ending is not true)
      and (coalesce(u.instances, '{}') <> coalesce(s.instances, '{}')
           or coalesce(s.n, 0) <> (select coalesce(sum(upper(r) - lower(r)), 0) from unnest(coalesce(u.instances, '{}')) as r))
)
select concat(l.dag_id, '/', l.run_id, ' ', t.task_id, '[' || nullif(m.map_index, -1) || ']') as object, m.found, m.expected
from (select * from misplaced union all select * from ill_ranged) as m
left join live l using (run_key)
left join task t on t.version_key = l.version_key and t.task_index = m.task_index
limit %(most)s
