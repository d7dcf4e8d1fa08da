-- Commands that empty this database: the schemas of reports, and everything in the schema public that belongs to no extension.
-- Partitions and the sequences of columns go with their tables, so tables come first.
with of_extension as (
    select classid, objid from pg_depend where deptype = 'e'
), commands as (
    select 0 as place, format('drop schema if exists %%I cascade', nspname) as command
    from pg_namespace
    where nspname ~ '^evenflow_reporting_v[0-9]+$'
    union all
    select case relkind when 'S' then 3 when 'r' then 2 when 'p' then 2 else 1 end,
           format('drop %%s if exists public.%%I cascade',
                  case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence' else 'table' end,
                  relname)
    from pg_class c
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S') and not relispartition
      and not exists (select from of_extension e where e.classid = 'pg_class'::regclass and e.objid = c.oid)
      and not (relkind = 'S' and exists (select from pg_depend d
                                         where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'i'))
    union all
    select 4, format('drop routine if exists %%s cascade', p.oid::regprocedure)
    from pg_proc p
    where pronamespace = 'public'::regnamespace
      and not exists (select from of_extension e where e.classid = 'pg_proc'::regclass and e.objid = p.oid)
    union all
    select 5, format('drop type if exists public.%%I cascade', typname)
    from pg_type t
    where typnamespace = 'public'::regnamespace and typtype in ('e', 'd')
      and not exists (select from of_extension e where e.classid = 'pg_type'::regclass and e.objid = t.oid)
)
select command from commands order by place, command
