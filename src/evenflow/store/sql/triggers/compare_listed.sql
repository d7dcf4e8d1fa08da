-- Where a triggerer's list of its triggers and ours differ: those to stop (not its own any more, or their tasks wait no longer),
-- and those that it lost (claimed a while before the list was made, not listed, and no event of them waits to be applied). The list
-- may come late, so that triggers of which it was too early to know run by now. heard_at_s is an instant before it was made, and
-- "asks" the key of the claim that the triggerer had not heard of then: it asks with that key until it is answered, and an answer
-- is on its way for two minutes at most. Triggerers of the release before say neither: their lists count as new, and the key is
-- that of the newest claim.
select coalesce(d.epoch, l.epoch) as epoch, l.epoch is null as lost, d.claim_number
from (
    select epoch, run_key, claimed_at, claim_key, claim_number from deferral where triggerer_id = %(service_id)s and purpose is null
) as d
full join unnest(%(epochs)s::bigint[]) as l (epoch) on l.epoch = d.epoch
cross join lateral (
    select coalesce(to_timestamp(%(heard_at_s)s::float8), now()) as made_at,
           case when %(heard_at_s)s::float8 is null then (select claim_key from service where service_id = %(service_id)s)
                else %(asks)s::text end as asks
) as x
where d.epoch is null
   or (l.epoch is null
       and (d.claim_key is distinct from x.asks or d.claimed_at < x.made_at - interval '2 minutes')
       and d.claimed_at < x.made_at - make_interval(secs => %(lost_after_s)s)
       and not exists (select from report r where r.run_key = d.run_key and r.epoch = d.epoch and r.kind = 'event'))
