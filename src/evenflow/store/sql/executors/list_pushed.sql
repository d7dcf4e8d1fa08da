-- The queues whose tries are sent to their executor, and its name.
select queue, executor from queue_executor where push
