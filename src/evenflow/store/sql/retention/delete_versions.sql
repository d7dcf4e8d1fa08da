-- Versions that are not among the newest few of their DAG, that it does not have now, and that no run and no callback names: some
-- of them, with their tasks.
with old as materialized (
    select version_key, dag_id
    from (select version_key, dag_id, row_number() over (partition by dag_id order by version_number desc) as place
        from dag_version) as v
    where place > %(kept)s
      and not exists (select from dag d where d.dag_id = v.dag_id and d.version_key = v.version_key)
      and not exists (select from dag_run r where r.version_key = v.version_key)
      and not exists (select from callback c where c.version_key = v.version_key)
    order by version_key
    limit %(limit)s
), versions as (
    delete from dag_version v using old where v.version_key = old.version_key returning v.version_key
)
select count(*)::int from versions
