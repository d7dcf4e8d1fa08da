-- Which executor the tries of a queue go to; `worker` has those that are not here.
select queue, executor from queue_executor
