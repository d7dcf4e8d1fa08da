-- The queues whose tries are sent to their executor, with its name and kind.
select queue, executor, kind from queue_executor where push
