-- A scheduler without the executor's lock stored lanes as paused; the holder looks again, whatever the DAG is by then.
update dag set pause_applied = not is_paused where dag_id = any(%(dag_ids)s)
