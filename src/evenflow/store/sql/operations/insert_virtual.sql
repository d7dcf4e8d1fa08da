-- Gives rows to virtual instances of mapped tasks, exactly these, in the state that a person wants. A map index of null means all.
-- Answers how many they were.
with added as (
    insert into task_instance (run_key, task_index, map_index, state, try_number, tries_before, ended_at, reason, ended_by)
    select %(run_key)s, m.task_index, i.map_index, %(state)s::task_state, m.tries_before, m.tries_before,
           case when not %(cleared)s then now() end, %(reason)s, %(ended_by)s
    from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
    cross join lateral (
        select task_index, length, tries_before from mapped_task
        where run_key = %(run_key)s and task_index = x.task_index and virtual_state = any(%(states)s::task_state[])
        offset 0
    ) as m
    cross join lateral (
        select x.map_index where x.map_index >= 0 and x.map_index < m.length
        union all
        select n from generate_series(0, m.length - 1) as n where x.map_index is null
    ) as i (map_index)
    on conflict (run_key, task_index, map_index) do nothing
    returning task_index, map_index, try_number
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
    select %(run_key)s, task_index, map_index, 0, try_number, %(event)s, %(state)s::task_state, %(detail)s::jsonb from added
)
select task_index, map_index from added
