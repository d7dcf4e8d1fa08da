-- Pools and executors, and how full they are.
select l.kind::text as limit, l.name, l.capacity, l.used
from concurrency_limit l
where l.run_key = 0
  and (l.kind = 'executor' and exists (select from executor e where e.name = l.name)
       or l.kind = 'pool' and exists (select from pool p where p.name = l.name))
order by l.kind, l.name
