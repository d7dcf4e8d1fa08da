-- Retries to come.
insert into timer (due_at, kind, run_key, task_index, map_index, epoch)
select now() + make_interval(secs => delay_s), 'retry', run_key, task_index, map_index, epoch
from unnest(%(delays)s::float8[], %(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(epochs)s::bigint[])
     as c (delay_s, run_key, task_index, map_index, epoch)
