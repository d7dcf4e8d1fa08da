-- Nodes that could start one, with the room of their pool and their executor.
select n.node_id, n.pool_limit, p.capacity - p.used, n.executor_limit, e.capacity - e.used, n.weight
from node n
join concurrency_limit p on p.limit_id = n.pool_limit
join concurrency_limit e on e.limit_id = n.executor_limit
where p.capacity - p.used >= n.weight and e.capacity - e.used >= 1
