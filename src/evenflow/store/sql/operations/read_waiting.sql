-- Task instances of a run that wait for their upstreams.
select run_key, task_index, map_index, state::text, epoch, try_number from task_instance where run_key = %(run_key)s and state = 'none'
