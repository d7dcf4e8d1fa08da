-- What is in flight in an object, by task: tries that run, that wait for a worker, and that are deferred or on their way back. Up
-- to a number of tasks, those with the most first, and the numbers of all tasks and tries. For deferrals alone, the places are read
-- from specs: once a task.
with waiting as materialized (
    select f.run_key, f.task_index
    from deferral f
    where not exists (
        select from dispatch d where d.run_key = f.run_key and d.task_index = f.task_index and d.map_index = f.map_index)
), places as materialized (
    select k.version_key, k.task_index, coalesce(v.spec -> 'tasks' -> k.task_index ->> 'pool', 'default_pool') as pool,
           coalesce(v.spec -> 'tasks' -> k.task_index ->> 'queue', 'default') as queue
    from (select distinct r.version_key, w.task_index from waiting w join dag_run r using (run_key)) as k
    join dag_version v using (version_key)
), found as (
    select d.run_key, d.task_index, (d.worker_id is not null)::int as running, (d.worker_id is null)::int as queued, 0 as deferred
    from dispatch d
    where case %(kind)s::text
              when 'pool' then d.holds[1] = (
                  select limit_id from concurrency_limit where run_key = 0 and kind = 'pool' and name = %(name)s)
              when 'queue' then d.queue = %(name)s
              when 'worker' then d.worker_id in (select service_id from service where kind = 'worker' and name = %(name)s)
              else true
          end
    union all
    select w.run_key, w.task_index, 0, 0, 1
    from waiting w
    join dag_run r using (run_key)
    join places p using (version_key, task_index)
    where case %(kind)s::text when 'pool' then p.pool = %(name)s when 'queue' then p.queue = %(name)s when 'worker' then false
        else true end
), counted as (
    select r.dag_id, r.version_key, f.task_index, sum(f.running)::int as running, sum(f.queued)::int as queued,
        sum(f.deferred)::int as deferred
    from found f
    join dag_run r using (run_key)
    where (%(kind)s::text <> 'dag' or r.dag_id = %(name)s)
        and (%(scope)s::jsonb is null or r.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
    group by r.dag_id, r.version_key, f.task_index
), named as (
    select c.dag_id, k.task_id, sum(running)::int as running, sum(queued)::int as queued, sum(deferred)::int as deferred
    from counted c
    join task k using (version_key, task_index)
    group by c.dag_id, k.task_id
)
select *, sum(running + queued + deferred) over ()::int as tries
from named
order by running + queued + deferred desc, dag_id, task_id
limit %(limit)s
