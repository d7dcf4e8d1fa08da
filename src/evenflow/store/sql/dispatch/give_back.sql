-- What a worker that says goodbye has claimed and not begun goes back, without a loss: an exit of each says so. It may never have
-- heard of it, as the answer to its claim was on its way. Those of which a report waits to be applied are left to that.
insert into report (run_key, kind, epoch, payload)
select d.run_key, 'exit', d.epoch,
       jsonb_build_object('outcome', 'cannot_start', 'given_back', true,
                          'reason', format('worker %%s on %%s ended before it had begun it', s.name, s.host))
from service s
cross join lateral (select run_key, epoch from dispatch where worker_id = s.service_id offset 0) as d
where s.service_id = %(service_id)s and d.epoch <> all(%(begun)s::bigint[])
  and not exists (select from report r where r.run_key = d.run_key and r.epoch = d.epoch)
returning epoch
