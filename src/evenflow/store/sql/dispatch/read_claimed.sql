-- What a worker must know of these tries of its own.
select {{claimed_try}}
from dispatch d
join dag_run r on r.run_key = d.run_key
left join mapped_task m on m.run_key = d.run_key and m.task_index = d.task_index and d.map_index >= 0
where d.worker_id = %(service_id)s and d.epoch = any(%(epochs)s::bigint[])
order by {{tries_in_order}}
