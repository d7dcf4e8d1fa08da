-- What a task instance has stored under a name, with the key that belongs to it, made when it is asked for first. Answers nothing
-- when the try is over, or when the instance has as many names as it may. The dispatch is kept until this commits (KEY SHARE).
with current as (
    {{current_try}}
), room as (
    select c.*
    from current c
    where (select count(*) from once_value o where o.run_key = c.run_key and o.task_index = c.task_index
        and o.map_index = c.map_index
                                               and o.name <> %(name)s) < %(limit)s::int
)
insert into once_value (run_key, task_index, map_index, name, epoch)
select run_key, task_index, map_index, %(name)s, epoch from room
on conflict (run_key, task_index, map_index, name) do update set epoch = excluded.epoch
returning key, value::text, sealed
