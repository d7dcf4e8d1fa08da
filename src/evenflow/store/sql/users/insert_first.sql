-- The first person, an admin; no row when there is somebody. Of two that ask at one moment one gets in, by the name.
insert into user_account (name, role, password, created_by)
select %(name)s, 'admin', %(password)s, %(by)s
where not exists (select from user_account)
on conflict (name) do nothing
returning name
