-- One task instance by names, with its newest try: that of a sensor between two looks has given its number back until the next.
-- State and try are null while it has no row.
select t.state::text, t.try_number + (t.state = 'up_for_reschedule')::int as try_number
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
left join task_instance t on t.run_key = r.run_key and t.task_index = k.task_index and t.map_index = %(map_index)s
where r.dag_id = %(dag_id)s and r.run_id = %(run_id)s
