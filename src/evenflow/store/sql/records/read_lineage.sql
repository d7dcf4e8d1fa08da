-- What the newest try of a task instance, or the one that is asked for, has read and written, and how that try ended. A cleared
-- task numbers its tries anew: the newest counts.
select c.run_key, c.epoch, r.dag_id, r.run_id, k.task_id, c.map_index, c.try_number, c.at, c.value, c.send_at is not null as unsent,
       case when exists (select from dispatch d where d.epoch = c.epoch) then 'running'
            when exists (select from task_event e where e.run_key = c.run_key and e.epoch = c.epoch
                and e.state = 'success') then 'success'
            else 'failed' end as state
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join try_record c on c.run_key = r.run_key and c.task_index = k.task_index and c.map_index = %(map_index)s and c.kind = 'lineage'
where r.dag_id = %(dag_id)s and r.run_id = %(run_id)s and c.try_number = coalesce(%(try_number)s::int, c.try_number)
order by c.epoch desc
limit 1
