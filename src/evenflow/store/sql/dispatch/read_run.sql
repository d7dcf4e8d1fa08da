-- The names of a run.
select dag_id, run_id, version_key from dag_run where run_key = %(run_key)s
