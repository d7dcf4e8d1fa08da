-- Of task instances that have only the past to wait for, holds those whose gate is closed; answers them.
with closed as (
    select c.run_key, c.task_index, c.map_index
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[]) as c (run_key, task_index, map_index)
    join past_gate g on g.run_key = c.run_key and g.task_index = c.task_index
    where g.missing > 0
), held as (
    insert into past_hold (run_key, task_index, map_index) select * from closed on conflict do nothing
)
select * from closed
