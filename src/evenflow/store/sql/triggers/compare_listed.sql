-- Where a triggerer's list of its triggers and ours differ: those to stop (not its own any more, or their tasks wait no longer), and those
-- that it lost (claimed a while ago, not listed, and no event of them waits to be applied). Those of its newest claim it may yet hear of:
-- it asks with that key until it is answered, and an answer is on its way for two minutes at most.
select coalesce(d.epoch, l.epoch) as epoch, l.epoch is null as lost
from (
    select epoch, run_key, claimed_at, claim_key from deferral where triggerer_id = %(service_id)s and purpose is null
) as d
full join unnest(%(epochs)s::bigint[]) as l (epoch) on l.epoch = d.epoch
where d.epoch is null
   or (l.epoch is null
       and (d.claim_key is distinct from (select claim_key from service where service_id = %(service_id)s)
            or d.claimed_at < now() - interval '2 minutes')
       and d.claimed_at < now() - make_interval(secs => %(lost_after_s)s)
       and not exists (select from report r where r.run_key = d.run_key and r.epoch = d.epoch and r.kind = 'event'))
