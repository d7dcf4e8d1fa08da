-- Fences of plans that have ended, or that do not exist.
select s.fence, s.name
from service s
where s.kind = 'worker' and s.state in ('active', 'draining') and s.fence is not null
  and not exists (select from scaling_step p where p.plan = s.fence and p.open)
