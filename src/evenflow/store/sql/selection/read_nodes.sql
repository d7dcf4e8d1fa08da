-- These nodes.
select node_id, base_id, pool_limit, executor_limit, queue, weight, task_limit from node where node_id = any(%(nodes)s::int[])
