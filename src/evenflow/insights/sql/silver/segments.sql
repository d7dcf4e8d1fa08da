-- A row a try, a cause and a stretch of time: what it waited for, ran or was deferred. Where several limits were full at once the narrowest
-- is the cause: the paused DAG, the cap of the run, of the task, the pool, the executor. What is left is the scheduler's own time.
with by_limit as (
    select run_key, task_index, map_index, from_us,
           sum(case when kind = 'paused' then us else 0 end) as paused_us,
           sum(case when kind = 'run' then us else 0 end) as run_us,
           sum(case when kind in ('dag_task', 'run_task') then us else 0 end) as task_us,
           sum(case when kind = 'pool' then us else 0 end) as pool_us,
           sum(case when kind = 'executor' then us else 0 end) as executor_us
    from blocked
    group by run_key, task_index, map_index, from_us
), of_wait as (
    select w.run_key, w.task_index, w.map_index, w.try_number, w.dag_id, w.version_key, w.from_us, w.resumes, w.until_us - w.from_us as us,
           coalesce(b.paused_us, 0) as paused_us, coalesce(b.run_us, 0) as run_us, coalesce(b.task_us, 0) as task_us,
           coalesce(b.pool_us, 0) as pool_us, coalesce(b.executor_us, 0) as executor_us
    from waits w
    left join by_limit b on b.run_key = w.run_key and b.task_index = w.task_index and b.map_index = w.map_index and b.from_us = w.from_us
), upto as (
    select o.*, least(us, paused_us) as to_paused, least(us, paused_us + run_us) as to_run, least(us, paused_us + run_us + task_us) as to_task,
           least(us, paused_us + run_us + task_us + pool_us) as to_pool,
           least(us, paused_us + run_us + task_us + pool_us + executor_us) as to_executor
    from of_wait o
), split as (
    select u.*, c.cause,
           case c.cause when 'paused' then to_paused when 'run cap' then to_run - to_paused when 'task cap' then to_task - to_run
                        when 'pool' then to_pool - to_task when 'executor' then to_executor - to_pool else u.us - to_executor end as part_us
    from upto u
    cross join (values ('paused'), ('run cap'), ('task cap'), ('pool'), ('executor'), ('scheduling')) as c (cause)
), stay as (
    select run_key, task_index, map_index, try_number, dag_id, version_key,
           case when resumes = 1 then 'resume' else cause end as cause, from_us as began_us, part_us as us
    from split
    where part_us > 0
    union all
    select run_key, task_index, map_index, 1, dag_id, version_key, 'upstream', begun_us, ready_us - begun_us
    from instances where ready_us > begun_us
    union all
    select run_key, task_index, map_index, try_number, dag_id, version_key,
           case when state = 'running' then 'running' when state = 'deferred' then 'deferred' when state = 'up_for_retry' then 'retry delay'
                when state = 'up_for_reschedule' then 'reschedule' when event = 'resume' then 'resume' else 'no worker' end,
           at_us,
           case when state = 'queued' and next_event not in ('start', 'requeue') then greatest(next_us - at_us - coalesce(next_ran_us, 0), 0) else next_us - at_us end
    from moves
    where state in ('queued', 'running', 'deferred', 'up_for_retry', 'up_for_reschedule') and next_us is not null
    union all
    select run_key, task_index, map_index, try_number, dag_id, version_key, 'running',
           next_us - least(coalesce(next_ran_us, 0), next_us - at_us), least(coalesce(next_ran_us, 0), next_us - at_us)
    from moves
    where state = 'queued' and next_event not in ('start', 'requeue') and next_ran_us > 0
)
select s.run_key, s.task_index, s.map_index, s.try_number, s.dag_id, t.task_id, t.owner, s.cause,
       case s.cause when 'pool' then t.pool when 'executor' then t.executor when 'run cap' then s.dag_id
                    when 'task cap' then concat(s.dag_id, '/', t.task_id) else '' end as limit_name,
       t.pool, t.pool_slots, s.began_us, s.us, cast(floor(s.began_us / 86400000000) as bigint) as day
from stay s
join (select distinct version_key, task_index, task_id, owner, pool, pool_slots, executor from tasks) t
  on t.version_key = s.version_key and t.task_index = s.task_index
where s.us > 0
