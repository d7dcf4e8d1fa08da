-- Versions that are not among the newest so many of their DAG, that it does not have now, and that no run and no callback names: some of
-- them, with their tasks, and with code that no other version has. One whose code is just being stored is younger.
with old as materialized (
    select version_key, dag_id, code_hash
    from (select version_key, dag_id, code_hash, row_number() over (partition by dag_id order by version_number desc) as place from dag_version) as v
    where place > %(kept)s
      and not exists (select from dag d where d.dag_id = v.dag_id and d.version_key = v.version_key)
      and not exists (select from dag_run r where r.version_key = v.version_key)
      and not exists (select from callback c where c.version_key = v.version_key)
    order by version_key
    limit %(limit)s
), versions as (
    delete from dag_version v using old where v.version_key = old.version_key returning v.version_key
), codes as (
    delete from code c
    using (select distinct code_hash from old) as h
    where c.code_hash = h.code_hash and c.code_hash <> ''
      and not exists (select from dag_version v where v.code_hash = c.code_hash and v.version_key not in (select version_key from old))
)
select count(*)::int from versions
