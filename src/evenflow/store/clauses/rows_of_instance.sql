-- Of the instance "w" of "run": its task, "k", its row, "t", and its dispatch and worker, "d" and "s", as far as they are there.
cross join lateral (
    select task_id, operator from task where version_key = run.version_key and task_index = w.task_index offset 0
) as k
left join lateral (
    select * from task_instance where run_key = run.run_key and task_index = w.task_index and map_index = w.map_index offset 0
) as t on true
left join dispatch d on d.epoch = t.epoch
left join service s on s.service_id = d.worker_id
