-- A token is good for nothing from now on. One that was revoked before keeps its moment.
update token
set revoked_at = coalesce(revoked_at, now()), revoked_by = coalesce(revoked_by, %(by)s)
where token_id = %(token_id)s
returning kind, name
