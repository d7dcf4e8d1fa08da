-- Which of these limits somebody waits for: lanes that are parked on them, open lanes of nodes that have them as pool or task limit,
-- executors that are full. And pools that may have to be kept for somebody, and limits that returns of deferred tasks have
-- overdrawn, or may have: what is released there may not be taken.
with recursive occupied as (
    select k.parked_on, n.queue_id
    from (values (0::bigint), (-2)) as k (parked_on)
    cross join lateral (select queue_id from lane where parked_on = k.parked_on order by queue_id limit 1) as n
    union all
    select o.parked_on, n.queue_id
    from occupied o
    cross join lateral (select queue_id from lane where parked_on = o.parked_on and queue_id > o.queue_id order by queue_id limit 1) as n
), given as materialized (
    select limit_id from unnest(%(limits)s::bigint[]) as g (limit_id)
)
select g.limit_id from given g cross join lateral (select from lane where parked_on = g.limit_id limit 1) as parked
union
select g.limit_id from given g, occupied o join node n on n.node_id = o.queue_id where g.limit_id in (n.pool_limit, n.task_limit)
union
select l.limit_id
from given g
join concurrency_limit l using (limit_id)
where l.kind = 'executor' and l.used >= l.capacity or l.patience_s is not null or l.used > l.capacity
union
select g.limit_id from given g join wake w using (limit_id) where w.released < 0
