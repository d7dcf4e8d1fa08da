-- A value that a running try pushes; answers nothing when the try is over. The dispatch is kept until this commits (KEY SHARE).
with current as (
    select run_key, task_index, map_index, epoch, %(value)s::jsonb as value
    from dispatch
    where epoch = %(epoch)s
    for key share of dispatch
)
insert into xcom (run_key, task_index, map_index, key, value, length, epoch, secret, object, size)
select run_key, task_index, map_index, %(key)s, value, coalesce(%(length)s::int, result_length(value)),
       epoch, %(secret)s, %(object)s, %(size)s
from current
{{replaces_xcom}}
returning epoch
