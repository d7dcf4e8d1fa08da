-- Which of these queues have tries that wait for a worker: resumes (class 0), first starts (class 1). The first of each, in the
-- order of the index, answers it: without the order the planner may read the table for it. "since" as in dispatch/claim.
select q.queue, c.class
from unnest(%(queues)s::text[]) as q (queue)
cross join (values (0), (1)) as c (class)
cross join lateral (
    select from dispatch d
    where d.queue = q.queue and d.class = c.class and worker_id is null and sent_at is null
      and d.xact >= coalesce((%(since)s::jsonb ->> (c.class || q.queue))::xid8, '0')
    order by {{tries_in_order}}
    limit 1
) as first_one
