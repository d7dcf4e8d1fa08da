-- Something that files were refused for may have changed: a DAG id is free now, or a pool exists. Parse them once more.
update dag_file set parsed = null, leases = 0 where error is not null
