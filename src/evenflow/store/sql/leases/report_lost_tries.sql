-- A lost report for every try claimed by a worker that has stopped or lost its lease, once. Only those that may have left something are
-- looked at. SKIP LOCKED: a loss of very many is told by one scheduler, and the others do not do it meanwhile.
with gone as materialized (
    select service_id, name, host
    from service
    where kind = 'worker' and state in ('lost', 'stopped') and not settled
    for no key update skip locked
)
insert into report (run_key, kind, epoch, payload)
select d.run_key, 'lost', d.epoch, jsonb_build_object('reason', format('worker %%s on %%s was lost', s.name, s.host))
from gone s
join dispatch d on d.worker_id = s.service_id
where not exists (select from report r where r.run_key = d.run_key and r.epoch = d.epoch)
