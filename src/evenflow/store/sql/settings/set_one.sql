-- A setting gets a value, and its history a line.
with change as (
    insert into setting_change (name, value, changed_by) values (%(name)s, %(value)s::jsonb, %(actor)s)
    returning version, name, value, changed_at, changed_by
)
insert into setting (name, value, changed_at, changed_by, version)
select name, value, changed_at, changed_by, version from change
on conflict (name) do update
set value = excluded.value, changed_at = excluded.changed_at, changed_by = excluded.changed_by, version = excluded.version
