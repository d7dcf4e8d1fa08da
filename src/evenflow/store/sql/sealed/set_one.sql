-- Stores a sealed value; a null description or null patterns stay as they are.
insert into sealed_value (kind, name, sealed, description, dags, changed_by)
values (%(kind)s, %(name)s, %(sealed)s, coalesce(%(description)s::text, ''), coalesce(%(dags)s::text[], '{}'), %(actor)s)
on conflict (kind, name) do update
set sealed = excluded.sealed, description = coalesce(%(description)s::text, sealed_value.description),
    dags = coalesce(%(dags)s::text[], sealed_value.dags), changed_at = now(), changed_by = excluded.changed_by
