-- Gives an active triggerer triggers of these queues, the longest waiting first, and answers all of this claim. SKIP LOCKED:
-- another claim has those. A claim key seen before takes nothing more: its answer was lost. As in dispatch/claim the key is left in
-- the triggerer's row, so that of two claims with one key the second waits there and takes nothing ("beaten"), and the triggerer
-- cannot be declared lost in between. A triggerer that has just given back triggers for which others have room takes nothing for a
-- moment (triggers/share_out).
with best as materialized (
    select d.run_key, d.task_index, d.map_index
    from unnest(%(queues)s::text[]) as q (queue)
    cross join lateral (
        select run_key, task_index, map_index, due_at
        from deferral
        where deferral.queue = q.queue and purpose is null and triggerer_id is null and due_at <= now()
        order by due_at
        limit %(capacity)s
        for no key update skip locked
    ) as d
    where not exists (select from deferral where triggerer_id = %(service_id)s and claim_key = %(claim_key)s)
      and not exists (select from service where service_id = %(service_id)s and fence_until > now())
    order by d.due_at
    limit %(capacity)s
), triggerer as (
    update service s set claim_key = %(claim_key)s
    where service_id = %(service_id)s and kind = 'triggerer' and {{takes_work}}
      and claim_key is distinct from %(claim_key)s and exists (select from best)
    returning service_id
), taken as (
    update deferral d
    set triggerer_id = triggerer.service_id, claim_number = d.claim_number + 1, claim_key = %(claim_key)s, claimed_at = now()
    from best b, triggerer
    where d.run_key = b.run_key and d.task_index = b.task_index and d.map_index = b.map_index
    returning d.*
), mine as (
    select * from taken
    union all
    select * from deferral where triggerer_id = %(service_id)s and claim_key = %(claim_key)s and purpose is null
)
select s.state, exists (select from best) and not exists (select from triggerer) as beaten,
       m.epoch, m.claim_number, m.run_key, m.task_index, m.map_index, t.try_number, r.version_key, r.dag_id, r.run_id, m.trigger,
           m.sealed,
       extract(epoch from now() - m.deferred_at)::float8 as deferred_s, m.failures,
       extract(epoch from m.claimed_at - m.due_at)::float8 as waited_s
from service s
left join mine m on true
left join lateral (select * from dag_run where dag_run.run_key = m.run_key offset 0) as r on true
left join lateral (
    select try_number from task_instance i
    where i.run_key = m.run_key and i.task_index = m.task_index and i.map_index = m.map_index
    offset 0
) as t on true
where s.service_id = %(service_id)s and s.kind = 'triggerer'
order by m.epoch
