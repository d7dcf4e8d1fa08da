-- Gives an active worker tries: returns first, then by priority. Each queue's index yields its own best. SKIP LOCKED: another claim has
-- those. A claim key seen before takes nothing more, its answer was lost. A worker that could not start a try is served last with it.
with best as (
    select d.epoch
    from unnest(%(queues)s::text[]) as q (queue)
    cross join lateral (
        select epoch, class, priority
        from dispatch
        where dispatch.queue = q.queue and worker_id is null
          and (avoid is distinct from %(service_id)s or created_at < now() - interval '5 seconds')
        order by class, priority desc, epoch
        limit %(slots)s
        for no key update skip locked
    ) as d
    where exists (
        select from service
        where service_id = %(service_id)s and kind = 'worker' and state = 'active' and beat_at > now() - make_interval(secs => %(lease_s)s)
    ) and not exists (
        select from dispatch where worker_id = %(service_id)s and claim_key = %(claim_key)s
    )
    order by d.class, d.priority desc, d.epoch
    limit %(slots)s
)
update dispatch
set worker_id = %(service_id)s, claim_key = %(claim_key)s, claimed_at = now()
from best
where dispatch.epoch = best.epoch
