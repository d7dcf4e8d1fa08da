-- Which of these tasks of a run have been expanded, and what their untouched instances are.
select run_key, task_index, length, virtual_state::text from mapped_task where run_key = %(run_key)s and task_index = any(%(tasks)s::int[])
