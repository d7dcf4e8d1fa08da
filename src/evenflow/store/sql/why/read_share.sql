-- What a tenant has of what it shares with others.
select s.kind::text, s.name, r.share_by, t.name as tenant, t.weight, l.used as held
from tenant t
join concurrency_limit l using (limit_id)
join concurrency_limit s on s.limit_id = t.scope_id
join sharing r on r.limit_id = t.scope_id
where t.limit_id = %(share_id)s
