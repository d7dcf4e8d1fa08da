-- The tasks that hold these limits: the oldest of each (of them those of a scope), how many there are in all, and how many of them
-- wait for a worker. One look at all that is in flight or deferred.
select h.limit_id, h.held_by, h.unclaimed, r.dag_id, r.run_id, k.task_id, h.map_index, h.slots, h.created_at as since,
    s.name as worker, h.deferred
from (
    select g.limit_id, d.run_key, d.task_index, d.map_index, d.created_at, d.epoch, d.worker_id, d.deferred,
           case when d.holds[1] = g.limit_id and d.pool_slots > 0 then d.pool_slots else 1 end as slots,
           count(*) over (partition by g.limit_id)::int as held_by,
           count(*) filter (where d.worker_id is null and not d.deferred) over (partition by g.limit_id)::int as unclaimed,
           row_number() over (partition by g.limit_id order by d.created_at, d.epoch) as place
    from (
        select run_key, task_index, map_index, created_at, epoch, worker_id, holds, pool_slots, false as deferred from dispatch
        union all
        select run_key, task_index, map_index, deferred_at, epoch, null, holds, pool_slots, true from deferral
    ) as d
    join unnest(%(limits)s::bigint[]) as g (limit_id) on g.limit_id = any(d.holds)
) as h
join dag_run r using (run_key)
join task k on k.version_key = r.version_key and k.task_index = h.task_index
left join service s on s.service_id = h.worker_id
where h.place <= %(named)s and (%(scope)s::jsonb is null or r.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
order by h.limit_id, h.place
