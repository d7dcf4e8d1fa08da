-- Forgets what a task instance has stored under a name, and its key; where no name is given all of it, but for what may still
-- run outside. The dispatch is kept until this commits (KEY SHARE).
with current as (
    {{current_try}}
), forgotten as (
    delete from once_value o
    using current c
    where o.run_key = c.run_key and o.task_index = c.task_index and o.map_index = c.map_index
      and (o.name = %(name)s or %(name)s::text is null and not o.outside)
)
select from current
