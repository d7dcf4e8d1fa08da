-- Pools, or one of them, with their slots and their policy. A limit whose pool was deleted does not count.
select p.name, p.description, l.capacity as slots, l.used, l.patience_s, p.while_deferred
from pool p
join concurrency_limit l on l.run_key = 0 and l.kind = 'pool' and l.name = p.name
where (%(name)s::text is null or p.name = %(name)s) and in_scope(%(scope)s::jsonb, 'pools', p.name)
order by p.name
