-- What is null stays.
update user_account
set role = coalesce(%(role)s, role), limited_to = case when %(has_scope)s then %(scope)s::jsonb else limited_to end,
    is_disabled = coalesce(%(is_disabled)s, is_disabled)
where name = %(name)s
