-- The run of this name of a DAG.
select run_key from dag_run where dag_id = %(dag_id)s and run_id = %(run_id)s
