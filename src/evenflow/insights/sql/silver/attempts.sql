-- A row a try: from when on, and for how long it waited for limits and workers, and ran; run_day is null where it never did.
select dag_id, task_id, run_key, task_index, map_index, try_number, min(day) as day,
       min(case when cause = 'running' then day end) as run_day,
       min(case when cause = 'running' then began_us end) as run_began_us,
       sum(case when cause = 'running' then us else 0 end) as run_us,
       sum(case when cause in ('paused', 'run cap', 'task cap', 'pool', 'executor', 'scheduling', 'no worker') then us else 0 end) as wait_us
from segments
group by dag_id, task_id, run_key, task_index, map_index, try_number
