-- The DAG's newest version. Whether it is paused is the operator's decision after the first time. Where it comes from another file
-- than before, that stands in the audit.
with before as (
    select bundle, file from dag where dag_id = %(dag_id)s
), told as (
    insert into audit_event (actor, action, object, detail)
    select 'processor', 'dag.move', %(dag_id)s,
           jsonb_build_object('from_bundle', bundle, 'from_file', file, 'bundle', %(bundle)s::text, 'file', %(file)s::text)
    from before
    where (bundle, file) <> (%(bundle)s, %(file)s)
)
insert into dag (dag_id, version_key, bundle, file, line, tags, is_paused, next_run_at, next_logical, forecast, wants_forecast)
values (%(dag_id)s, %(version_key)s, %(bundle)s, %(file)s, %(line)s, %(tags)s, %(is_paused)s, %(next_run_at)s, %(next_logical)s,
        %(forecast)s::jsonb, %(wants_forecast)s)
on conflict (dag_id) do update
set version_key = excluded.version_key, bundle = excluded.bundle, file = excluded.file, line = excluded.line, tags = excluded.tags,
    is_active = true,
    next_run_at = excluded.next_run_at, next_logical = excluded.next_logical,
    forecast = excluded.forecast, wants_forecast = excluded.wants_forecast, updated_at = now()
