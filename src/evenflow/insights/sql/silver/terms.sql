-- A row a task of a version and a limit that it counts in: which, and how much of it one instance takes. Limits of a run have its key in
-- the place of scope, those of all runs 0.
with task as (
    select distinct version_key, dag_id, task_index, task_id, owner, pool, pool_slots, executor, max_active_tis_per_dag, max_active_tis_per_dagrun,
           max_active_tasks
    from tasks
)
select version_key, task_index, 'pool' as kind, pool as name, false as of_run, pool_slots as slots, cast(null as int) as capacity from task
union all
select version_key, task_index, 'executor', executor, false, 1, cast(null as int) from task
union all
select version_key, task_index, 'dag_task', concat(dag_id, '/', task_id), false, 1,
       max(max_active_tis_per_dag) over (partition by dag_id, task_id)
from task where max_active_tis_per_dag is not null
union all
select version_key, task_index, 'run', dag_id, true, 1, max_active_tasks from task where max_active_tasks is not null
union all
select version_key, task_index, 'run_task', concat(dag_id, '/', task_id), true, 1, max_active_tis_per_dagrun
from task where max_active_tis_per_dagrun is not null
