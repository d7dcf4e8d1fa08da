-- Starts minus releases, one update per limit and transaction. Only under the executor's lock.
update concurrency_limit l set used = l.used + c.delta
from unnest(%(limits)s::bigint[], %(deltas)s::int[]) as c (limit_id, delta)
where l.limit_id = c.limit_id
