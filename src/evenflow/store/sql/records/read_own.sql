-- What this try has said of its work.
select value from try_record
where run_key = %(run_key)s and task_index = %(task_index)s and map_index = %(map_index)s and epoch = %(epoch)s and kind = %(kind)s
