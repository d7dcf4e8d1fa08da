-- Mapped tasks that were cleared as a whole and of which, as of all others of their region, no process runs any more: one row
-- stands for each again, until it expands anew. Answers which.
with region as materialized (
    select * from unnest(%(tasks)s::int[], %(regions)s::int[]) as g (task_index, number)
), begun as materialized (
    select g.number
    from region g
    cross join lateral (select from task_instance where run_key = %(run_key)s and task_index = g.task_index limit 1) as t
), gone as (
    delete from mapped_task
    where run_key = %(run_key)s and virtual_state = any(%(states)s::task_state[])
      and task_index = any(array(select task_index from region where number not in (select number from begun)))
    returning task_index, tries_before
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)
    select %(run_key)s, task_index, -1, 0, tries_before, %(event)s, %(state)s::task_state from gone
)
insert into task_instance (run_key, task_index, state, try_number, tries_before)
select %(run_key)s, task_index, %(state)s::task_state, tries_before, tries_before from gone
returning task_index
