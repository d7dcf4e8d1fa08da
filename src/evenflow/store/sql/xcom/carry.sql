-- Values that tries pushed before they were deferred pass to the epoch under which they resume, so that they stay the newest of
-- their task.
update xcom x
set epoch = c.epoch
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(were)s::bigint[], %(epochs)s::bigint[])
     as c (run_key, task_index, map_index, was, epoch)
where x.run_key = c.run_key and x.task_index = c.task_index and x.map_index = c.map_index and x.epoch = c.was
