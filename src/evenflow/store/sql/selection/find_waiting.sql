-- Which of these limits somebody waits for: lanes that are parked on them, open lanes of nodes that have them as pool or task limit, and
-- executors that are full.
with recursive occupied as (
    (select node_id from lane where parked_on = 0 order by node_id limit 1)
    union all
    select n.node_id
    from occupied o
    cross join lateral (select node_id from lane where parked_on = 0 and node_id > o.node_id order by node_id limit 1) as n
), given as materialized (
    select limit_id from unnest(%(limits)s::bigint[]) as g (limit_id)
)
select g.limit_id from given g cross join lateral (select from lane where parked_on = g.limit_id limit 1) as parked
union
select g.limit_id from given g, occupied o join node n using (node_id) where g.limit_id in (n.pool_limit, n.task_limit)
union
select l.limit_id from given g join concurrency_limit l using (limit_id) where l.kind = 'executor' and l.used >= l.capacity
