-- The untouched instances of these mapped tasks leave their lanes. Under the executor's lock.
update lane set ready = ready - (end_map_index - next_map_index), end_map_index = next_map_index
where run_key = %(run_key)s and task_index = any(%(tasks)s::int[])
