-- Which of these tries are the current or the last one of their task instance.
select c.epoch
from unnest(%(epochs)s::bigint[], %(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[]) as c (epoch, run_key, task_index,
    map_index)
join task_instance t on t.run_key = c.run_key and t.task_index = c.task_index and t.map_index = c.map_index and t.epoch = c.epoch
