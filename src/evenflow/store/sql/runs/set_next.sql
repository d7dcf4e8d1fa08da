-- When this DAG's next scheduled run is due.
update dag set next_run_at = %(next_run_at)s, next_logical = %(next_logical)s where dag_id = %(dag_id)s
