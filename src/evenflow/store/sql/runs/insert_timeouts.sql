-- When these runs, which start now, have taken too long.
insert into timer (due_at, kind, run_key, task_index, map_index, epoch)
select now() + make_interval(secs => seconds), 'run_timeout', run_key, -1, -1, (extract(epoch from now()) * 1e6)::bigint
from unnest(%(run_keys)s::bigint[], %(seconds)s::float8[]) as c (run_key, seconds)
