-- Tries by queue: how many wait for a worker and how long the oldest, and how many workers have.
select queue, count(*) filter (where worker_id is null)::int as waiting, count(worker_id)::int as running,
       extract(epoch from now() - min(created_at) filter (where worker_id is null))::float8 as oldest_waiting_s
from dispatch
group by queue
order by queue
