-- Mapped tasks that were cleared as a whole and of which no process runs any more: one row stands for each again, until it expands anew.
with gone as (
    delete from mapped_task m
    where m.run_key = %(run_key)s and m.rest = 'removed'
      and not exists (select from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index)
    returning task_index, tries_before
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)
    select %(run_key)s, task_index, -1, 0, tries_before, %(event)s, 'none' from gone
)
insert into task_instance (run_key, task_index, try_number, tries_before)
select %(run_key)s, task_index, tries_before, tries_before from gone
