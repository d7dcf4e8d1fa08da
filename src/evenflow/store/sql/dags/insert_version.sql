-- The version with this spec and code of this bundle: a new one, or the one that was stored before.
with inserted as (
    insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file, bundle, revision)
    select %(dag_id)s, coalesce(max(version_number), 0) + 1, %(spec)s::jsonb, %(spec_hash)s, %(code_hash)s, %(file)s,
           %(bundle)s::text, %(revision)s
    from dag_version
    where dag_id = %(dag_id)s
    on conflict (dag_id, spec_hash, code_hash, bundle) do nothing
    returning version_key
)
select version_key, true as is_new from inserted
union all
select version_key, false from dag_version
where dag_id = %(dag_id)s and spec_hash = %(spec_hash)s and code_hash = %(code_hash)s
    and bundle is not distinct from %(bundle)s::text
