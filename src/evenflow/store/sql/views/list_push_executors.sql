-- Executors that are sent what waits: how many launchers that live serve each, and what one that cannot says of it. Both are few.
with live as materialized (
    select detail from service s
    where kind = 'launcher' and {{is_healthy}}
)
select e.name, e.kind,
    array(select queue from unnest(e.queues) as queue where in_scope(%(scope)s::jsonb, 'queues', queue)) as queues,
       (select count(*)::int from live where live.detail -> 'executors' ? e.name) as launchers,
       (select min(live.detail -> 'refused' ->> e.name) from live) as refusal
from executor e
where e.kind <> 'native' and exists (select from unnest(e.queues) as queue where in_scope(%(scope)s::jsonb, 'queues', queue))
order by e.name
