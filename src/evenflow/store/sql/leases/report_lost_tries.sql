-- A lost report for every try claimed by a worker that has stopped or is lost, once. Whatever a worker is lost for, it was not
-- heard of for a whole lease by the clock of leases: until then it may not know, and its tries may run. Only those that may have
-- left something are looked at. SKIP LOCKED: a loss of very many is told by one scheduler, and the others do not do it meanwhile.
-- What such a try may have stored without saying so is looked for when its process has surely ended. LATERAL: what workers that are
-- there have held is not read.
with gone as materialized (
    select service_id,
           coalesce(fate, format(case state when 'stopped' then 'worker %%s on %%s ended before it'
               else 'worker %%s on %%s was lost' end, name, host))
               as reason
    from service
    where kind = 'worker' and state in ('lost', 'stopped') and not settled
      and (state = 'stopped' or beat_at < (select ticked_at from lease_clock
                                           where counted_from <= ticked_at - make_interval(secs => %(lease_s)s))
                                          - make_interval(secs => %(lease_s)s))
    for no key update skip locked
), lost as materialized (
    select d.run_key, d.epoch, s.reason
    from gone s
    cross join lateral (select run_key, epoch from dispatch where worker_id = s.service_id offset 0) as d
    where not exists (select from report r where r.run_key = d.run_key and r.epoch = d.epoch)
), stored as (
    insert into xcom_garbage (object, at) select epoch || '-*', now() + interval '1 hour' from lost
    on conflict (object) do update set at = excluded.at
)
insert into report (run_key, kind, epoch, payload)
select run_key, 'lost', epoch, jsonb_build_object('reason', reason)
from lost
