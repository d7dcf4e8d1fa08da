-- Room on these limits, a pool's patience, and since when there is room. Only the holder of the executor's lock changes use, so it reads
-- without locking.
select limit_id, capacity - used as free, patience_s, extract(epoch from released_at)::float8 as released_at_s
from concurrency_limit
where limit_id = any(%(limits)s::bigint[])
