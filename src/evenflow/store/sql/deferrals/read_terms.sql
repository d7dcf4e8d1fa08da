-- What decides about each of these limits when a task that holds it defers. About what a tenant has decides what it is a share of.
select l.limit_id, s.kind::text, p.while_deferred
from concurrency_limit l
left join tenant t using (limit_id)
join concurrency_limit s on s.limit_id = coalesce(t.scope_id, l.limit_id)
left join pool p on s.kind = 'pool' and p.name = s.name
where l.limit_id = any(%(limits)s::bigint[])
