-- Tries by queue: how many wait for a worker and how long the oldest, how many workers have, and who serves the queue: live
-- workers, a fleet that an autoscaler makes, an executor that is sent what waits. Services are few; of them each queue is looked
-- for once.
select q.queue, q.waiting, q.running, q.oldest_waiting_s,
       (select count(*)::int from service s
        where s.kind = 'worker' and {{is_healthy}}
          and s.detail -> 'queues' ? q.queue) as workers,
       (select min(f.name) from fleet f where q.queue = any (f.queues)) as fleet,
       (select e.executor from queue_executor e where e.queue = q.queue and e.push) as executor
from (
    select queue, count(*) filter (where worker_id is null)::int as waiting, count(worker_id)::int as running,
           extract(epoch from now() - min(created_at) filter (where worker_id is null))::float8 as oldest_waiting_s
    from dispatch
    where in_scope(%(scope)s::jsonb, 'queues', queue)
    group by queue
) as q
order by q.queue
