-- What a running try stores under a name that it has asked for before; what is there already stays, unless it is to be replaced.
-- Answers what is there now, and nothing when the try is over or has not asked. The dispatch is kept until this commits (KEY
-- SHARE).
with current as (
    {{current_try}}
)
update once_value o
set value = case when %(replaces)s or o.value is null and o.sealed is null then %(value)s::jsonb else o.value end,
    sealed = case when %(replaces)s or o.value is null and o.sealed is null then %(sealed)s::bytea else o.sealed end,
    outside = case when %(replaces)s or o.value is null and o.sealed is null then %(outside)s::boolean else o.outside end,
    epoch = c.epoch, at = now()
from current c
where o.run_key = c.run_key and o.task_index = c.task_index and o.map_index = c.map_index and o.name = %(name)s
returning o.key, o.value::text, o.sealed
