-- What a worker must know of these tries of its own.
select d.epoch, d.run_key, d.task_index, d.map_index, d.try_number, m.length, d.class, r.version_key, r.dag_id, r.run_id, r.run_type, r.params,
       r.run_after, r.logical_date, r.data_interval_start, r.data_interval_end
from dispatch d
join dag_run r on r.run_key = d.run_key
left join mapped_task m on m.run_key = d.run_key and m.task_index = d.task_index and d.map_index >= 0
where d.worker_id = %(service_id)s and d.epoch = any(%(epochs)s::bigint[])
order by d.class, d.priority desc, d.epoch
