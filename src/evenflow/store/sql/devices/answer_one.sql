-- A person says yes or no, once.
update device_login
set is_approved = %(is_approved)s, answered_by = %(by)s, role = %(role)s, days = %(days)s
where user_digest = any(%(user_digests)s) and expires_at > now() and is_approved is null
returning machine, address, role, days, began_at, expires_at
