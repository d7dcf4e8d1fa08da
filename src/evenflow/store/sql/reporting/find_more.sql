-- What a role may do in this database, by itself or as a role that it may become, beside writing to some tables and reading the
-- views of a schema of reports, the catalogues and what extensions let everybody see: a few names. The owner of a relation, and a
-- superuser, may do all. Partitions are read through what they are of, so they count by themselves. Files of the server and the
-- stream of its changes have all that is in the database.
with roles as materialized (
    select oid, rolname, rolreplication from pg_roles where pg_has_role(%(role)s::name, oid, 'member')
)
select c.oid::regclass::text as found
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname not in ('pg_catalog', 'information_schema')
    and n.nspname !~ '^pg_(toast|temp)'
  and c.oid <> all(%(tables)s::regclass[])
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
  and exists (
      select from roles r
      where has_schema_privilege(r.oid, n.oid, 'usage')
        and (has_table_privilege(r.oid, c.oid, 'insert, update, delete, truncate')
             or has_any_column_privilege(r.oid, c.oid, 'insert, update')
             or (n.nspname <> %(schema)s and has_any_column_privilege(r.oid, c.oid, 'select'))))
union all
select rolname::text from roles where rolname in ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
union all
select 'replication' where exists (select from roles where rolreplication)
order by found
limit 5
