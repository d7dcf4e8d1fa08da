-- Which of these runs are in a scope.
select run_key from dag_run where run_key = any(%(run_keys)s::bigint[]) and dag_id in (select dags_in_scope(%(scope)s::jsonb))
