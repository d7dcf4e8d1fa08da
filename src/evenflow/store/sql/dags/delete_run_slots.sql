-- A DAG whose newest version does not limit its runs.
delete from concurrency_limit where run_key = 0 and kind = 'dag_runs' and name = %(dag_id)s
