-- Until when workers are to have claimed these tries, of tasks that say so. What waits in its other queue already has no such time.
insert into timer (due_at, kind, run_key, task_index, map_index, epoch)
select now() + make_interval(secs => t.queued_timeout_s), 'queued_timeout', c.run_key, c.task_index, c.map_index, c.epoch
from unnest(%(epochs)s::bigint[], %(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(queues)s::text[])
     as c (epoch, run_key, task_index, map_index, queue)
join dag_run r on r.run_key = c.run_key
join task t on t.version_key = r.version_key and t.task_index = c.task_index
where t.queued_timeout_s is not null and c.queue is distinct from t.other_queue
