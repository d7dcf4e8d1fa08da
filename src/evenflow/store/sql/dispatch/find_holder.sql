-- The worker that has a try, as it has registered.
select s.service_id, s.host, s.pid, coalesce(s.detail ->> 'client', '') as client
from dispatch d
join service s on s.service_id = d.worker_id
where d.epoch = %(epoch)s
