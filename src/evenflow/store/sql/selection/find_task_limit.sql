-- A max_active_tis_per_dag limit by name.
select limit_id from concurrency_limit where run_key = 0 and kind = 'dag_task' and name = %(name)s
