-- These workers take nothing more, for this plan and for this time. Waits for claims that are under way: a look afterwards sees
-- what those take. One that drains by itself takes nothing anyway, and its fence says that this plan ends it. A worker that another
-- plan has fenced is left alone. NO KEY UPDATE, in one order, as a claim locks its worker.
with chosen as materialized (
    select service_id
    from service
    where service_id = any(%(workers)s::bigint[]) and kind = 'worker' and state in ('active', 'draining')
        and (fence = %(plan)s or (fence_until > now()) is not true)
    order by service_id
    for no key update
)
update service s
set fence = %(plan)s, fence_until = now() + make_interval(secs => %(for_s)s)
from chosen c
where s.service_id = c.service_id
returning s.name
