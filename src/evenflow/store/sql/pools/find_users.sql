-- Tasks that name a pool: in the newest versions of DAGs, and in the versions of runs that have not ended. Reads all of these specs
-- and all runs, for a person who wants to delete a pool.
with versions as (
    select dag_id, version_key, null as run_id from dag where is_active
    union all
    select dag_id, version_key, run_id from dag_run where state in ('queued', 'running')
)
select v.dag_id, task ->> 'task_id' as task_id, v.run_id
from versions v
join dag_version using (version_key)
cross join lateral jsonb_array_elements(spec -> 'tasks') as task
where task ->> 'pool' = %(name)s
order by v.run_id nulls first, v.dag_id, task_id
limit %(limit)s
