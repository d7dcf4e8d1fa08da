-- Task instances of a run that wait for their upstreams, in order: those behind a given one, up to a limit.
select run_key, task_index, map_index, state::text, epoch, try_number
from task_instance
where run_key = %(run_key)s and (task_index, map_index) > (%(task_index)s, %(map_index)s) and state = 'none'
order by task_index, map_index
limit %(limit)s
