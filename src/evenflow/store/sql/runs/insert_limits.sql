-- Limits of new runs, by ids of run_limit_seq.
insert into concurrency_limit (limit_id, kind, run_key, name, capacity) overriding system value
select limit_id, kind, run_key, name, capacity
from unnest(%(limits)s::bigint[], %(kinds)s::limit_kind[], %(run_keys)s::bigint[], %(names)s::text[], %(capacities)s::int[])
     as c (limit_id, kind, run_key, name, capacity)
