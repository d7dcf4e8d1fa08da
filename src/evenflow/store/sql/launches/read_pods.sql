-- What the tasks of these tries say of their pods; those that say nothing are left out.
select d.epoch, t.task -> 'pod_override' as override, (t.task -> 'resources' ->> 'memory')::bigint as memory,
    (t.task -> 'resources' ->> 'cpu')::float8 as cpu
from dispatch d
join dag_run r using (run_key)
join dag_version v using (version_key)
cross join lateral (select v.spec -> 'tasks' -> d.task_index as task) as t
where d.epoch = any(%(epochs)s::bigint[]) and (t.task ? 'pod_override' or t.task ? 'resources')
