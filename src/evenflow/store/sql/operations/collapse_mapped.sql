-- Mapped tasks that were cleared as a whole and of which, and of those expanded with them (of the same span), no process runs any more: one
-- row stands for each again, until it expands anew. Answers which.
with span as materialized (
    select * from unnest(%(tasks)s::int[], %(spans)s::int[]) as s (task_index, number)
), gone as (
    delete from mapped_task m
    using span s
    where m.run_key = %(run_key)s and m.rest = 'removed' and s.task_index = m.task_index
      and not exists (
          select from span o
          join task_instance t on t.run_key = %(run_key)s and t.task_index = o.task_index
          where o.number = s.number)
    returning m.task_index, m.tries_before
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)
    select %(run_key)s, task_index, -1, 0, tries_before, %(event)s, 'none' from gone
)
insert into task_instance (run_key, task_index, try_number, tries_before)
select %(run_key)s, task_index, tries_before, tries_before from gone
returning task_index
