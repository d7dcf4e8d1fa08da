-- What the tasks "s" of the versions "v" hold when they run, by their specs.
v.version_key, v.dag_id, (s.position - 1)::int as task_index, s.task ->> 'task_id' as task_id,
    coalesce(s.task ->> 'pool', 'default_pool') as pool, coalesce(s.task ->> 'queue', 'default') as queue,
    coalesce((s.task ->> 'pool_slots')::int, 1) as pool_slots,
    s.task ->> 'max_active_tis_per_dag' is not null as across_runs
from dag_version v
cross join lateral jsonb_array_elements(v.spec -> 'tasks') with ordinality as s (task, position)
