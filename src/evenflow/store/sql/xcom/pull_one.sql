-- One value, unless a try that has been superseded since pushed it.
select x.value::text, x.object
from xcom x
join task_instance t using (run_key, task_index, map_index, epoch)
where x.run_key = %(run_key)s and x.task_index = %(task_index)s and x.map_index = %(map_index)s and x.key = %(key)s
