-- Mapped tasks that were cleared as a whole and of which, and of those expanded with them (of the same span), no process runs any more: one
-- row stands for each again, until it expands anew. Answers which.
with span as materialized (
    select * from unnest(%(tasks)s::int[], %(spans)s::int[]) as s (task_index, number)
), begun as materialized (
    select s.number
    from span s
    cross join lateral (select from task_instance where run_key = %(run_key)s and task_index = s.task_index limit 1) as t
), gone as (
    delete from mapped_task
    where run_key = %(run_key)s and rest = 'removed'
      and task_index = any(array(select task_index from span where number not in (select number from begun)))
    returning task_index, tries_before
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)
    select %(run_key)s, task_index, -1, 0, tries_before, %(event)s, 'none' from gone
)
insert into task_instance (run_key, task_index, try_number, tries_before)
select %(run_key)s, task_index, tries_before, tries_before from gone
returning task_index
