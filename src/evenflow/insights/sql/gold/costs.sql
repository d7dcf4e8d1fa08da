-- By day, DAG and owner: how long tries ran, in slots of their pools and as they are, and how long they waited and were deferred.
with attempt as (
    select day, dag_id, owner, max(case when cause = 'running' then 1 else 0 end) as ran,
           sum(case when cause = 'running' then us * pool_slots else 0 end) as slot_us,
           sum(case when cause = 'running' then us else 0 end) as run_us,
           sum(case when cause = 'deferred' then us else 0 end) as deferred_us,
           sum(case when cause not in ('running', 'deferred', 'upstream') then us else 0 end) as wait_us
    from segments
    group by day, dag_id, owner, run_key, task_index, map_index, try_number
)
select day, dag_id, owner, sum(ran) as tries, sum(slot_us) as slot_us, sum(run_us) as run_us, sum(deferred_us) as deferred_us, sum(wait_us) as wait_us
from attempt
group by day, dag_id, owner
