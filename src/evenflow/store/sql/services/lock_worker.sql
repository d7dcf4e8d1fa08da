-- The state of a worker that claims, and which of its tries are to be killed. Locked until the claim commits, so that nobody declares it
-- lost between the look and the claim; NO KEY is enough, the row's key never changes.
select s.state, array(select d.epoch from dispatch d where d.worker_id = s.service_id and d.kill)
from service s
where s.service_id = %(service_id)s and s.kind = 'worker'
for no key update
