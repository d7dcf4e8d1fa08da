-- Dispatches that do not hold the limits of their task, in order: pool, executor (that of its queue when it began), its own across
-- runs, its own in its run, the run's. A try that ended while its run was in quarantine holds nothing. Of a tenant's share each
-- holds nothing, or as much as of its pool.
with spec as materialized (
    select {{limits_of_specs}}
    where v.version_key in (select r.version_key from dispatch d join dag_run r using (run_key))
), compared as (
    select d.run_key, d.epoch, s.dag_id, r.run_id, s.task_id, d.map_index, h.holds, d.pool_slots, s.pool_slots as expected_slots,
        h.shares,
           array(
               select l.limit_id
               from (values (0, 'pool'::limit_kind, s.pool), (0, 'executor', e.name),
                            (0, 'dag_task', case when s.across_runs then s.dag_id || '/' || s.task_id end),
                            (d.run_key, 'run_task', s.task_id), (d.run_key, 'run', '')) as w (run_key, kind, name)
               join concurrency_limit l using (run_key, kind, name)
               order by l.kind = 'run', l.kind
           ) as expected
    from dispatch d
    join dag_run r using (run_key)
    join spec s using (version_key, task_index)
    left join queue_executor q on q.queue = s.queue
    cross join lateral (
        select coalesce((select name from concurrency_limit where kind = 'executor' and limit_id = any(d.holds)), q.executor,
            'worker') as name
    ) as e
    cross join lateral (
        select coalesce(array_agg(x.limit_id order by x.position) filter (where t.limit_id is null), '{}') as holds,
               count(t.limit_id) as shares
        from unnest(d.holds) with ordinality as x (limit_id, position)
        left join tenant t using (limit_id)
    ) as h
)
select concat(dag_id, '/', run_id, ' ', task_id, '[' || nullif(map_index, -1) || ']') as object,
       concat('limits ', holds, ' with ', pool_slots, ' pool slots') as found,
       concat('limits ', expected, ' with ', expected_slots, ' pool slots') as expected
from compared
where (holds <> expected or pool_slots <> expected_slots or shares not in (0, pool_slots))
  and not (holds = '{}'
      and exists (select from report p where p.run_key = compared.run_key and p.epoch = compared.epoch and p.kind = 'exit'))
limit %(most)s
