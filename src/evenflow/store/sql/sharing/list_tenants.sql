-- The tenants of a pool or executor, those with the most slots for their weight first.
select t.name, t.weight, u.used as held
from concurrency_limit l
join tenant t on t.scope_id = l.limit_id
join concurrency_limit u on u.limit_id = t.limit_id
where l.run_key = 0 and l.kind = %(kind)s::limit_kind and l.name = %(name)s
order by u.used::numeric / t.weight desc, t.name
limit %(limit)s
