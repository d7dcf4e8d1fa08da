-- Where the newest try of a task instance that had a page of Spark has said that it is, and whether that try still runs, or waits for what
-- it has submitted.
select c.try_number, c.value,
       exists (select from dispatch d where d.epoch = c.epoch)
       or exists (select from deferral f
                  where f.run_key = c.run_key and f.task_index = c.task_index and f.map_index = c.map_index and f.epoch = c.epoch
                    and f.purpose is null) as runs
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join try_record c on c.run_key = r.run_key and c.task_index = k.task_index and c.map_index = %(map_index)s and c.kind = 'spark_ui'
where r.dag_id = %(dag_id)s and r.run_id = %(run_id)s
order by c.epoch desc
limit 1
