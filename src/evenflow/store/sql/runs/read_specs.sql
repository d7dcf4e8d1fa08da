-- The specs of DAG versions.
select version_key, spec::text from dag_version where version_key = any(%(version_keys)s::bigint[])
