-- Task instances that are deferred without waiting for anything, rows of such that are not deferred and have not resumed, and
-- deferrals that keep and take again something else than what their task holds when it runs: pool, executor, its own across runs,
-- its own in its run, the run's.
with live as (
    select t.run_key, t.task_index, t.map_index, t.epoch
    from dag_run r
    join task_instance t using (run_key)
    where r.state = 'running' and t.state = 'deferred'
), spec as materialized (
    select {{limits_of_specs}}
    where v.version_key in (select r.version_key from deferral f join dag_run r using (run_key))
), judged as (
    select coalesce(f.run_key, l.run_key) as run_key, coalesce(f.task_index, l.task_index) as task_index,
        coalesce(f.map_index, l.map_index) as map_index,
           case
               when f.run_key is null then 'deferred, and waits for nothing'
               when f.purpose is null
                   and l.epoch is distinct from f.epoch then 'waits for its trigger, and is not deferred in epoch ' || f.epoch
               when f.purpose is not null and l.epoch is not null then 'deferred, and has resumed'
               when f.purpose is not null and f.holds <> '{}' then 'has resumed, and keeps limits ' || f.holds::text
               when f.purpose is not null and d.epoch is null
                   and t.state is distinct from 'scheduled' then 'has resumed, and is ' || coalesce(t.state::text, 'gone')
               when f.purpose is null
                   and f.pool_slots + f.retake_slots <> s.pool_slots then 'has ' || f.pool_slots + f.retake_slots || ' pool slots'
               when f.purpose is null
                   and x.expected is distinct from x.found then 'has limits ' || x.found::text || ' instead of ' || x.expected::text
           end as found
    from live l
    full join deferral f using (run_key, task_index, map_index)
    left join task_instance t on t.run_key = f.run_key and t.task_index = f.task_index and t.map_index = f.map_index
    left join dispatch d on d.epoch = t.epoch and d.class = 0
    left join dag_run r on r.run_key = f.run_key
    left join spec s on s.version_key = r.version_key and s.task_index = f.task_index
    left join queue_executor q on q.queue = s.queue
    cross join lateral (
        select coalesce((select name from concurrency_limit where kind = 'executor' and limit_id = any(f.holds || f.retake)),
            q.executor, 'worker') as name
    ) as e
    cross join lateral (
        select array(select x.k from unnest(f.holds || f.retake) as x (k) where not exists (select from tenant where limit_id = x.k)
            order by 1) as found,
               array(
                   select c.limit_id
                   from (values (0, 'pool'::limit_kind, s.pool), (0, 'executor', e.name),
                                (0, 'dag_task', case when s.across_runs then s.dag_id || '/' || s.task_id end),
                                (f.run_key, 'run_task', s.task_id), (f.run_key, 'run', '')) as w (run_key, kind, name)
                   join concurrency_limit c using (run_key, kind, name)
                   order by 1
               ) as expected
    ) as x
)
select concat(r.dag_id, '/', r.run_id, ' ', k.task_id, '[' || nullif(j.map_index, -1) || ']') as object, j.found,
       'deferred and waiting, or resumed and on its way' as expected
from judged j
left join dag_run r using (run_key)
left join task k using (version_key, task_index)
where j.found is not null
limit %(most)s
