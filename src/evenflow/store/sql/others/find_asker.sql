-- The task instance that requests a run: that of a running try, its names, and its DAG's run.
select r.run_key, r.dag_id, r.run_id, k.task_id, t.map_index, t.tries_before, coalesce(v.bundle, '') as bundle
from dispatch d
join task_instance t using (run_key, task_index, map_index, epoch)
join dag_run r using (run_key)
join dag_version v using (version_key)
join task k on k.version_key = r.version_key and k.task_index = d.task_index
where d.epoch = %(epoch)s
