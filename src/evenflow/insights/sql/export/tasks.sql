-- The tasks of the versions that these runs are of.
select version_key, dag_id, task_index, task_id, operator, owner, pool, pool_slots, executor, max_active_tis_per_dag,
       max_active_tis_per_dagrun, max_active_tasks, max_active_runs, upstream
from evenflow_reporting_v1.tasks
where version_key = any(%(versions)s::bigint[])
order by version_key, task_index
