-- The spec of a DAG version.
select spec::text from dag_version where version_key = %(version_key)s
