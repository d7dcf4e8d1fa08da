-- Archives that no version has, some of them: of versions that are gone, and of DAGs that were refused. One that came a moment ago
-- stays: its version is about to be stored. That is asked of the row as it is when it is locked, so one that just came again stays,
-- too.
delete from code c
where c.code_hash = any(array(
    select o.code_hash
    from code o
    where o.created_at < now() - interval '1 hour' and o.code_hash <> ''
      and not exists (select from dag_version v where v.code_hash = o.code_hash)
    order by o.created_at
    limit %(limit)s))
  and c.created_at < now() - interval '1 hour'
returning c.code_hash
