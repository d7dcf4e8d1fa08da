-- The max_active_runs limit of a DAG.
select limit_id from concurrency_limit where run_key = 0 and kind = 'dag_runs' and name = %(dag_id)s
