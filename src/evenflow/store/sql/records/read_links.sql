-- The links that the newest try of a task instance has told, if any has.
select c.try_number, c.value
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join try_record c on c.run_key = r.run_key and c.task_index = k.task_index and c.map_index = %(map_index)s and c.kind = 'links'
where r.dag_id = %(dag_id)s and r.run_id = %(run_id)s
order by c.epoch desc
limit 1
