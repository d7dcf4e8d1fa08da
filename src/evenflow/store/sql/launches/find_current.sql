-- Those of these epochs whose try waits for a worker or runs, the worker that has it, and whether it is to end.
select d.epoch, d.queue, s.name as worker, d.kill
from dispatch d
left join service s on s.service_id = d.worker_id
where d.epoch = any(%(epochs)s::bigint[])
