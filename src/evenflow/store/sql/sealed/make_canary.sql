-- The canary: a text sealed with the keys in use, by which an API notices that its own are others. The first who starts makes it.
insert into sealed_value (kind, name, sealed, changed_by)
values ('canary', %(name)s, %(sealed)s, %(host)s)
on conflict (kind, name) do nothing
