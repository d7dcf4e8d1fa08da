-- The node of a pool, executor, queue, weight and task limit, made if there is none.
with wanted as (
    select p.limit_id as pool_limit, e.limit_id as executor_limit, %(queue)s::text as queue, %(weight)s::int as weight,
           %(task_limit)s::bigint as task_limit
    from concurrency_limit p, concurrency_limit e
    where p.run_key = 0 and p.kind = 'pool' and p.name = %(pool)s and e.run_key = 0 and e.kind = 'executor' and e.name = %(executor)s
), made as (
    insert into node (pool_limit, executor_limit, queue, weight, task_limit) select * from wanted
    on conflict do nothing
    returning node_id, pool_limit, executor_limit
)
select * from made
union all
select n.node_id, n.pool_limit, n.executor_limit
from node n
join wanted w on (n.pool_limit, n.executor_limit, n.queue, n.weight) = (w.pool_limit, w.executor_limit, w.queue, w.weight)
             and n.task_limit is not distinct from w.task_limit
