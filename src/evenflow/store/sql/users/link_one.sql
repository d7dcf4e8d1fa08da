-- The person whom a provider of identities vouches for, with what their groups may here from now on; made when they come for the
-- first time. No row: the name belongs to another person.
with known as (
    update user_account set role = %(role)s, limited_to = %(scope)s::jsonb
    where subject = %(subject)s
    returning name, password, is_disabled
), made as (
    insert into user_account (name, role, limited_to, password, subject, created_by)
    select %(name)s, %(role)s, %(scope)s::jsonb, '', %(subject)s, %(by)s
    where not exists (select from known)
    on conflict do nothing
    returning name, password, is_disabled
)
select name, password, is_disabled, false as is_new from known
union all
select name, password, is_disabled, true from made
