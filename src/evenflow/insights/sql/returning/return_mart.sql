-- The rows of a mart take the place of those from before.
insert into mart (name, rows) values (%(name)s, %(rows)s::jsonb)
on conflict (name) do update set made_at = now(), rows = excluded.rows
