-- All tokens that this maker has given out and that are still good.
update token
set revoked_at = now(), revoked_by = %(by)s
where created_by = %(by)s and revoked_at is null and expires_at > now()
returning token_id
