-- The first person, an admin; no row when a person exists. Of two that ask at one moment one succeeds, by the name.
insert into user_account (name, role, password, created_by)
select %(name)s, 'admin', %(password)s, %(by)s
where not exists (select from user_account)
on conflict (name) do nothing
returning name
