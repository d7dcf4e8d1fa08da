-- By day, DAG and owner: how long tries ran, in slots of their pools and as they are, and how long they waited and were deferred.
select day, dag_id, owner, count(distinct case when cause = 'running' then concat(run_key, '/', task_index, '/', map_index, '/', try_number) end) as tries,
       sum(case when cause = 'running' then us * pool_slots else 0 end) as slot_us,
       sum(case when cause = 'running' then us else 0 end) as run_us,
       sum(case when cause = 'deferred' then us else 0 end) as deferred_us,
       sum(case when cause not in ('running', 'deferred', 'upstream') then us else 0 end) as wait_us
from segments
group by day, dag_id, owner
