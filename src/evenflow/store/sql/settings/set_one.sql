-- A setting gets a value; who gave it and when stands beside it.
insert into setting (name, value, changed_by) values (%(name)s, %(value)s::jsonb, %(actor)s)
on conflict (name) do update set value = excluded.value, changed_at = now(), changed_by = excluded.changed_by
