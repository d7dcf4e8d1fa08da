-- Gives one deferral its new seals, unless it has changed meanwhile.
update deferral set sealed = %(new)s, event = %(new_event)s
where run_key = %(run_key)s and task_index = %(task_index)s and map_index = %(map_index)s
  and sealed = %(old)s and event is not distinct from %(old_event)s::bytea
