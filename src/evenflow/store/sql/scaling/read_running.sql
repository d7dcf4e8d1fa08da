-- What workers have, by run and task: how many tries, and for how many seconds the youngest of them has run. Of runs in which
-- something may begin: none that is cancelled or set aside, and none of a DAG that is off. Looks at a limited number of tries.
with held as materialized (
    select run_key, task_index, count(*)::int as tries, max(claimed_at) as youngest
    from (select run_key, task_index, claimed_at from dispatch where worker_id is not null limit %(most)s) as d
    group by run_key, task_index
)
select h.run_key, r.version_key, h.task_index, h.tries, extract(epoch from now() - h.youngest)::float8 as ran_s
from held h
cross join lateral (
    select version_key, dag_id from dag_run
    where dag_run.run_key = h.run_key and state = 'running' and cancelled_by is null and quarantined_at is null
    offset 0
) as r
cross join lateral (select from dag where dag.dag_id = r.dag_id and not is_paused offset 0) as d
