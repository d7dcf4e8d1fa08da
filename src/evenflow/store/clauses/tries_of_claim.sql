-- The worker of this claim, "s", with each try of "mine", "d", what never changes of its run, "r", if it is newer than what the
-- asker knows, and "m" if its task is mapped.
from service s
left join mine d on true
left join lateral (select * from dag_run where dag_run.run_key = d.run_key and d.run_key > %(newest_run)s offset 0) as r on true
left join lateral (
    select length from mapped_task
    where mapped_task.run_key = d.run_key and mapped_task.task_index = d.task_index and d.map_index >= 0
    offset 0
) as m on true
where s.service_id = %(service_id)s and s.kind = 'worker'
