-- The end of each of these tries that is in hand and of which no end is told yet: lost, with a reason, or failed. Those that a
-- worker has are told of only on purpose: its own report may come as well, and the first that is applied counts.
with given as materialized (
    select * from unnest(%(epochs)s::bigint[], %(reasons)s::text[]) as g (epoch, reason)
)
insert into report (run_key, kind, epoch, payload)
select d.run_key, case when %(failed)s then 'exit' else 'lost' end::report_kind, d.epoch,
       jsonb_build_object('reason', g.reason) || case when %(failed)s then '{"outcome": "failed"}'::jsonb else '{}' end
from given g
join dispatch d using (epoch)
where (d.worker_id is null or %(claimed)s)
  and not exists (select from report r where r.run_key = d.run_key and r.epoch = d.epoch and r.kind in ('exit', 'lost'))
returning epoch
