-- The DAG of callbacks is what came with the schema, whatever has been written there since.
update dag
set version_key = v.version_key, bundle = 'evenflow', file = '', is_active = true, is_paused = false, next_run_at = null,
    next_logical = null,
    updated_at = now()
from dag_version v
where dag.dag_id = %(dag_id)s and v.dag_id = dag.dag_id and v.spec_hash = '' and v.code_hash = ''
  and (dag.version_key, dag.bundle, dag.file, dag.is_active) is distinct from (v.version_key, 'evenflow', '', true)
