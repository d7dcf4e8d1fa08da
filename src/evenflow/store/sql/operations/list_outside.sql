-- What tries of these runs that workers have, or that wait for what they have submitted, have outside: an application of Spark that
-- they have told of, and the pod that is their worker.
select o.kind, o.name, k.task_id, o.map_index, r.run_id
from (
    select 'Spark application' as kind, c.value ->> 'application_id' as name, t.run_key, t.task_index, t.map_index
    from task_instance t
    join try_record c on c.run_key = t.run_key and c.task_index = t.task_index and c.map_index = t.map_index
        and c.try_number = t.try_number and c.kind = 'spark_ui'
    where t.run_key = any(%(run_keys)s::bigint[]) and t.state in ('queued', 'running', 'deferred')
    union all
    select 'pod', s.name, t.run_key, t.task_index, t.map_index
    from task_instance t
    join dispatch d on d.epoch = t.epoch
    join queue_executor e on e.queue = d.queue and e.kind = 'kubernetes'
    join service s on s.service_id = d.worker_id
    where t.run_key = any(%(run_keys)s::bigint[]) and t.state in ('queued', 'running')
) as o
join dag_run r using (run_key)
join task k on k.version_key = r.version_key and k.task_index = o.task_index
order by r.run_key, o.task_index, o.map_index
limit %(limit)s
