-- What the newest try of a task instance that has told of Spark, or the one that is asked for, has said, whether that try still
-- runs, or waits for what it has submitted, and whether a later one runs.
select c.try_number, c.at, c.value,
       exists (select from dispatch d where d.epoch = c.epoch)
       or exists (select from deferral f
                  where f.run_key = c.run_key and f.task_index = c.task_index and f.map_index = c.map_index and f.epoch = c.epoch
                    and f.purpose is null) as runs,
       exists (select from task_instance t
               where t.run_key = c.run_key and t.task_index = c.task_index and t.map_index = c.map_index and t.epoch > c.epoch
                 and t.state in ('running', 'deferred'))
       and not exists (select from deferral f  -- it has resumed
                       where f.run_key = c.run_key and f.task_index = c.task_index and f.map_index = c.map_index
                           and f.epoch = c.epoch)
       as is_earlier
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join try_record c on c.run_key = r.run_key and c.task_index = k.task_index and c.map_index = %(map_index)s and c.kind = %(kind)s
where r.dag_id = %(dag_id)s and r.run_id = %(run_id)s and c.try_number = coalesce(%(try_number)s::int, c.try_number)
order by c.epoch desc
limit 1
