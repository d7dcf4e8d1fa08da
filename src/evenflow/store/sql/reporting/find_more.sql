-- What a role can read in this database beside the views of a schema of reports and the catalogues that everybody reads: a few names.
-- Whoever owns a relation, or is a superuser, can read it. Partitions are read through what they are of, so they count by themselves.
select c.oid::regclass::text
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not in (%(schema)s, 'pg_catalog', 'information_schema') and n.nspname !~ '^pg_(toast|temp)'
  and (has_table_privilege(%(role)s::name, c.oid, 'select') or has_any_column_privilege(%(role)s::name, c.oid, 'select'))
  and has_schema_privilege(%(role)s::name, n.oid, 'usage')
order by 1
limit 5
