-- How many of its triggers a triggerer is to give back, so that those that serve the same queues have as many each. What they
-- report of themselves is compared first; only if this one has clearly more than the mean (a tenth and some) are all triggers
-- counted, with the waiting ones. Gives back no more than the others have room for. A triggerer that gives back takes nothing for a
-- while, or it might take the same ones again.
with me as materialized (
    select service_id, coalesce(detail -> 'queues', '[]') as queues, (detail ->> 'running')::int as running
    from service
    where service_id = %(service_id)s and kind = 'triggerer' and state = 'active'
), others as materialized (
    select s.service_id, (s.detail ->> 'running')::int as running, (s.detail ->> 'capacity')::int as capacity
    from service s, me
    where s.kind = 'triggerer' and {{takes_work}}
      and s.service_id <> me.service_id and coalesce(s.detail -> 'queues', '[]') = me.queues
), crowded as materialized (
    select me.service_id, me.queues
    from me
    where me.running > (select avg(running) from others) * 1.1 + %(slack)s
), held as materialized (
    select o.capacity, count(d.epoch) as has
    from crowded
    cross join (select service_id, capacity from others union all select service_id, null from me) as o
    left join deferral d on d.triggerer_id = o.service_id and d.purpose is null
    group by o.service_id, o.capacity
), counted as materialized (
    select sum(has) filter (where capacity is null) as own, sum(has) as all_of_them, count(*) as triggerers,
           sum(greatest(capacity - has, 0)) as room,
           (select count(*)
            from deferral d, crowded c
            where d.triggerer_id is null and d.purpose is null and d.due_at <= now()
                and (c.queues = '[]' or c.queues ? d.queue)) as waiting
    from held
), surplus as materialized (
    select least(own - ceil((all_of_them + waiting) / triggerers), room - waiting)::int as number from counted
)
update service s
set fence_until = now() + make_interval(secs => %(pause_s)s)
from surplus
where s.service_id = %(service_id)s and surplus.number > %(slack)s
returning surplus.number
