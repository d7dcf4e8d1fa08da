-- A lost report for every try claimed by a worker that has stopped or lost its lease, once.
insert into report (run_key, kind, epoch, payload)
select d.run_key, 'lost', d.epoch, jsonb_build_object('reason', format('worker %%s on %%s was lost', s.name, s.host))
from service s
join dispatch d on d.worker_id = s.service_id
where s.kind = 'worker' and s.state in ('lost', 'stopped')
  and not exists (select from report r where r.run_key = d.run_key and r.epoch = d.epoch)
