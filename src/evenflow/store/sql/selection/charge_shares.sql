-- What tenants were served, and the times of what they share, after a round that started tasks of theirs. Only under the executor's
-- lock.
with charged as (
    update tenant t set served = c.served
    from unnest(%(shares)s::bigint[], %(served)s::bigint[]) as c (limit_id, served)
    where t.limit_id = c.limit_id
)
update sharing s set time = c.time
from unnest(%(scopes)s::bigint[], %(times)s::bigint[]) as c (limit_id, time)
where s.limit_id = c.limit_id
