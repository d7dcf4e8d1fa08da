-- Executors that are sent what waits: how many launchers that live serve each, and what one that cannot says of it; how many pods
-- have not claimed their tries for long, and one of them; whether any launcher lives. All are few. Pods have names and messages of
-- their DAGs, so only those in the scope count.
with live as materialized (
    select detail from service s
    where kind = 'launcher' and {{is_healthy}}
)
select e.name, e.kind,
    array(select queue from unnest(e.queues) as queue where in_scope(%(scope)s::jsonb, 'queues', queue)) as queues,
       (select count(*)::int from live where live.detail -> 'executors' ? e.name) as launchers,
       (select min(live.detail -> 'refused' ->> e.name) from live) as refusal, exists (select from live) as looked_for,
    w.waiting, w.pod
from executor e
left join lateral (
    select count(distinct w.epoch)::int as waiting, (array_agg(w.pod order by w.epoch))[1] as pod
    from live cross join lateral jsonb_each(live.detail -> 'waiting' -> e.name) as w (epoch, pod)
    where (w.pod ->> 'lasts')::boolean
      and (%(scope)s::jsonb is null or exists (
          select from dispatch d join dag_run r using (run_key)
          where d.epoch = w.epoch::bigint and r.dag_id in (select dags_in_scope(%(scope)s::jsonb))))
) as w on true
where e.kind <> 'native' and exists (select from unnest(e.queues) as queue where in_scope(%(scope)s::jsonb, 'queues', queue))
order by e.name
