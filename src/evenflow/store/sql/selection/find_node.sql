-- The node of a pool, executor, queue and weight, made if there is none.
with wanted as (
    select p.limit_id as pool_limit, e.limit_id as executor_limit, %(queue)s::text as queue, %(weight)s::int as weight
    from concurrency_limit p, concurrency_limit e
    where p.run_key = 0 and p.kind = 'pool' and p.name = %(pool)s and e.run_key = 0 and e.kind = 'executor' and e.name = %(executor)s
), made as (
    insert into node (pool_limit, executor_limit, queue, weight) select * from wanted
    on conflict do nothing
    returning node_id, pool_limit, executor_limit
)
select * from made
union all
select n.node_id, n.pool_limit, n.executor_limit from node n join wanted using (pool_limit, executor_limit, queue, weight)
