-- DAG versions by key.
select version_key, version_number, spec::text, code_hash, file, coalesce(bundle, '') as bundle from dag_version
where version_key = any(%(keys)s::bigint[])
