-- The lanes of DAGs that were paused are parked as such, except lanes of tries that continue in a paused DAG; their limits are
-- woken for the lanes behind them.
with parked as (
    update lane l set parked_on = -1
    from dag_run r
    where r.run_key = l.run_key and r.dag_id = any(%(dag_ids)s) and r.state = 'running' and l.parked_on not in (-1, -3)
        and not l.exempt
    returning l.class_id, l.locals
)
select unnest(locals) as limit_id from parked
union
select n.task_limit from parked join limit_class n using (class_id) where n.task_limit is not null
