-- Whether runs of the DAG "d" are made and begin: not while it is paused or drains, nor while the system does not take on
-- everything. Calls of authors' functions are runs that begin all the same.
not d.is_paused and not exists (
    select from service_state s
    where s.kind = 'dag' and s.name = d.dag_id and s.state = 'draining' or s.kind = 'system' and d.dag_id <> 'evenflow_callbacks')
