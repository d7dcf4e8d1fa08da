-- The last answer to a task instance, and the person who gave it.
select a.choice, a.answered_by, a.answered_at
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join approval a on a.run_key = r.run_key and a.task_index = k.task_index and a.map_index = %(map_index)s
where r.run_key = %(run_key)s
order by a.epoch desc
limit 1
