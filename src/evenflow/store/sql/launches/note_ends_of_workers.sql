-- What is known of the end of the workers that have these tries: the reason when they are lost. The first that is told stays.
update service s
set fate = g.reason
from unnest(%(epochs)s::bigint[], %(reasons)s::text[]) as g (epoch, reason)
join dispatch d using (epoch)
where s.service_id = d.worker_id and s.kind = 'worker' and s.fate is null
