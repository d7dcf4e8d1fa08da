-- What is null stays.
update user_account
set role = coalesce(%(role)s, role), is_disabled = coalesce(%(is_disabled)s, is_disabled)
where name = %(name)s
