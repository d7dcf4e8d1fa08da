-- Pools and executors, or one of them, and the rules for them beyond the order. A limit whose pool was deleted does not count.
select l.kind::text, l.name, s.aging_s, s.share_by, coalesce(s.weights, '{}') as weights
from concurrency_limit l
left join sharing s using (limit_id)
where l.run_key = 0 and l.kind in ('pool', 'executor')
  and (%(kind)s::text is null or l.kind::text = %(kind)s and l.name = %(name)s)
  and (l.kind = 'executor' and exists (select from executor e where e.name = l.name)
      or exists (select from pool p where p.name = l.name))
  and (l.kind <> 'pool' or in_scope(%(scope)s::jsonb, 'pools', l.name))
order by l.kind, l.name
