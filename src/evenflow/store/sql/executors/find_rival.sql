-- Another executor that has one of these queues, and which.
select executor, queue from queue_executor where executor <> %(name)s and queue = any(%(queues)s::text[]) order by executor, queue
limit 1
