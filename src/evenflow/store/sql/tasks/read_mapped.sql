-- How long these mapped tasks are, and how their virtual instances stand, under the lock of their runs.
select m.run_key, m.task_index, m.length, m.virtual_state::text
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[]) as k (run_key, task_index)
join mapped_task m on m.run_key = k.run_key and m.task_index = k.task_index
