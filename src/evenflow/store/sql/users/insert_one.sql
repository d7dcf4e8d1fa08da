-- A person who is new; no row when the name is taken.
insert into user_account (name, role, limited_to, password, created_by)
values (%(name)s, %(role)s, %(scope)s::jsonb, %(password)s, %(by)s)
on conflict (name) do nothing
returning name
