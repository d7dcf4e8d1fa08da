-- Gives one value that is stored once its new seal, unless it has changed meanwhile.
update once_value set sealed = %(new)s
where run_key = %(run_key)s and task_index = %(task_index)s and map_index = %(map_index)s and name = %(name)s and sealed = %(old)s
