-- A rule, made or changed.
insert into notification_rule (name, event, dags, scope, notifier, conn_id, signed_by, recipients, is_enabled, changed_by)
values (%(name)s, %(event)s, %(dags)s, %(scope)s::jsonb, %(notifier)s, %(conn_id)s, %(signed_by)s, %(recipients)s, %(is_enabled)s,
    %(by)s)
on conflict (name) do update
set event = excluded.event, dags = excluded.dags, scope = excluded.scope, notifier = excluded.notifier, conn_id = excluded.conn_id,
    signed_by = excluded.signed_by, recipients = excluded.recipients, is_enabled = excluded.is_enabled,
        changed_by = excluded.changed_by, changed_at = now()
