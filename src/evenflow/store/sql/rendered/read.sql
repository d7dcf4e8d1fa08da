-- The rendered template fields of the newest try of a task instance that had any, by names.
select f.fields
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join rendered f on f.run_key = r.run_key and f.task_index = k.task_index and f.map_index = %(map_index)s
where r.dag_id = %(dag_id)s and r.run_id = %(run_id)s
