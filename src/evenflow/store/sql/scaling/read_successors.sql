-- Of these tasks of runs those that have not begun and that no run before holds back, with the counts of their upstreams where
-- there are any, and how many tasks max_active_tasks of the run lets begin.
select k.run_key, k.task_index, u.total, u.success, u.failed, u.skipped, l.capacity - l.used as room
from unnest(%(run_keys)s::bigint[], %(task_indexes)s::int[]) as k (run_key, task_index)
left join task_instance i on i.run_key = k.run_key and i.task_index = k.task_index and i.map_index = -1
left join upstream_counter u on u.run_key = k.run_key and u.task_index = k.task_index and u.map_index = -1
left join concurrency_limit l on l.run_key = k.run_key and l.kind = 'run' and l.name = ''
where coalesce(i.state, 'none') = 'none'
  and not exists (select from mapped_task m where m.run_key = k.run_key and m.task_index = k.task_index)
  and not exists (select from past_gate p where p.run_key = k.run_key and p.task_index = k.task_index)
