-- The newest version of a DAG.
select d.version_key, v.spec::text, d.is_active, d.is_paused, d.file, d.bundle
from dag d
join dag_version v on v.version_key = d.version_key
where d.dag_id = %(dag_id)s
