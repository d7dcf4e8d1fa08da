-- A row a task instance: when it became ready and was given to workers first, and when it ended last, as its events say.
select run_key, task_index, map_index, min(dag_id) as dag_id, min(version_key) as version_key,
       min(case when event = 'ready' then at_us end) as ready_us,
       min(case when event = 'grant' then at_us end) as granted_us,
       max(case when state in ('success', 'failed', 'skipped', 'upstream_failed') then at_us end) as ended_us
from moves
group by run_key, task_index, map_index
