-- What decides about each of these limits when a task that holds it defers.
select l.limit_id, l.kind::text, p.while_deferred
from concurrency_limit l
left join pool p on l.kind = 'pool' and p.name = l.name
where l.limit_id = any(%(limits)s::bigint[])
