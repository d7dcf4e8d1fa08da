-- All nodes: tens to hundreds.
select node_id, pool_limit, executor_limit, queue, weight from node
