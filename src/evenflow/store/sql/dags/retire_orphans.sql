-- DAGs of this bundle whose file is gone. Their runs continue.
update dag set is_active = false, next_run_at = null, next_logical = null, updated_at = now()
where bundle = %(bundle)s and is_active
  and not exists (select from dag_file f where f.bundle = dag.bundle and f.file = dag.file)
returning dag_id
