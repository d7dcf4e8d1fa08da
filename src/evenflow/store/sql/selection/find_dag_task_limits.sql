-- max_active_tis_per_dag limits by name.
select name, limit_id from concurrency_limit where run_key = 0 and kind = 'dag_task' and name = any(%(names)s)
