-- What these tenants have, and the time of what they share. Only the holder of the executor's lock changes either, so it reads
-- without locking.
select t.limit_id as share_id, t.scope_id, t.weight, l.used as held, t.served, s.time
from tenant t
join concurrency_limit l using (limit_id)
join sharing s on s.limit_id = t.scope_id
where t.limit_id = any(%(shares)s::bigint[])
