-- The answer to a task that waits, under the lock of its run. From now on its time is not over any more: the timer goes.
with timed as (
    delete from timer
    where run_key = %(run_key)s and task_index = %(task_index)s and map_index = %(map_index)s and epoch = %(epoch)s
        and kind = 'trigger_timeout'
)
insert into approval (run_key, task_index, map_index, epoch, choice, answered_by)
values (%(run_key)s, %(task_index)s, %(map_index)s, %(epoch)s, %(choice)s, %(answered_by)s)
returning answered_at
