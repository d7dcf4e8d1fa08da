-- The names of a new version's tasks, in the order of the spec.
insert into task (version_key, task_index, task_id, operator)
select %(version_key)s, position - 1, task_id, operator
from unnest(%(task_ids)s::text[], %(operators)s::text[]) with ordinality as t (task_id, operator, position)
