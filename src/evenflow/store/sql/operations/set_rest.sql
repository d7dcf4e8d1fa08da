-- The instances of these mapped tasks that have no row end all at once, as an operator wants. Answers of which tasks.
update mapped_task m set rest = %(state)s::task_state
where m.run_key = %(run_key)s and m.task_index = any(%(tasks)s::int[]) and m.rest = any(%(states)s::task_state[])
returning m.task_index
