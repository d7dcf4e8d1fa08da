-- Limits of new runs.
insert into concurrency_limit (kind, run_key, name, capacity)
select kind, run_key, name, capacity
from unnest(%(kinds)s::limit_kind[], %(run_keys)s::bigint[], %(names)s::text[], %(capacities)s::int[]) as c (kind, run_key, name, capacity)
returning limit_id, kind::text, run_key, name
