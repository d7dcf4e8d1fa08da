-- Starts minus releases, one update per limit and transaction. Only under the executor's lock.
update concurrency_limit l
set used = l.used + c.delta, released_at = case when c.delta < 0 then to_timestamp(c.released_at_s) else l.released_at end
from unnest(%(limits)s::bigint[], %(deltas)s::int[], %(released_at)s::float8[]) as c (limit_id, delta, released_at_s)
where l.limit_id = c.limit_id
