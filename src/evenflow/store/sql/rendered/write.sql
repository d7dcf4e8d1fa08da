-- What the template fields of a running try became; answers nothing when the try is over. The dispatch is kept until this commits
-- (KEY SHARE).
with current as (
    {{current_try}}
)
insert into rendered (run_key, task_index, map_index, epoch, fields)
select run_key, task_index, map_index, epoch, %(fields)s::jsonb from current
on conflict (run_key, task_index, map_index) do update set epoch = excluded.epoch, fields = excluded.fields
returning epoch
