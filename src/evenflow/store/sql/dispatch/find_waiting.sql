-- Which of these queues have tries that wait for a worker.
select q.queue
from unnest(%(queues)s::text[]) as q (queue)
where exists (select from dispatch d where d.queue = q.queue and d.worker_id is null)
