-- The virtual instances of these mapped tasks end all at once, as a person wants. Answers how many of each task.
update mapped_task m set virtual_state = %(state)s::task_state, virtual_reason = %(reason)s, virtual_ended_by = %(ended_by)s
where m.run_key = %(run_key)s and m.task_index = any(%(tasks)s::int[]) and m.virtual_state = any(%(states)s::task_state[])
returning m.length - (select count(*)::int from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index
    and t.map_index >= 0)
