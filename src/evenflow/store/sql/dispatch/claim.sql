-- Gives an active worker tries and answers all of this claim: returns first, then by priority. Each queue's index yields its own best;
-- SKIP LOCKED: another claim has those. A worker that could not start a try is served last with it. A claim key seen before takes
-- nothing more: its answer was lost. Taking leaves the key in the worker's row, so of two claims with one key at the same time the second
-- waits there, sees it and takes nothing ("beaten"; what the first took is not in its snapshot), and nobody declares the worker lost
-- between the look and the claim.
with best as materialized (
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
    where not exists (select from dispatch where worker_id = %(service_id)s and claim_key = %(claim_key)s)
    order by d.class, d.priority desc, d.epoch
    limit %(slots)s
), worker as (
    update service set claim_key = %(claim_key)s
    where service_id = %(service_id)s and kind = 'worker' and state = 'active' and beat_at > now() - make_interval(secs => %(lease_s)s)
      and claim_key is distinct from %(claim_key)s and exists (select from best)
    returning service_id
), taken as (
    update dispatch d
    set worker_id = worker.service_id, claim_key = %(claim_key)s, claimed_at = now()
    from worker
    where d.epoch = any(array(select epoch from best))
    returning d.*
), mine as (
    select * from taken
    union all
    select * from dispatch where worker_id = %(service_id)s and claim_key = %(claim_key)s
)
select s.state, exists (select from best) and not exists (select from worker) as beaten,
       array(select epoch from dispatch where worker_id = %(service_id)s and kill) as kill,
       extract(epoch from d.claimed_at - d.created_at)::float8 as waited_s,
       d.epoch, d.run_key, d.task_index, d.map_index, d.try_number, r.version_key, r.dag_id, r.run_id, r.run_type, r.params, r.run_after,
       r.logical_date, r.data_interval_start, r.data_interval_end, m.length
from service s
left join mine d on true
left join lateral (select * from dag_run where dag_run.run_key = d.run_key offset 0) as r on true
left join lateral (
    select length from mapped_task
    where mapped_task.run_key = d.run_key and mapped_task.task_index = d.task_index and d.map_index >= 0
    offset 0
) as m on true
where s.service_id = %(service_id)s and s.kind = 'worker'
order by d.class, d.priority desc, d.epoch
