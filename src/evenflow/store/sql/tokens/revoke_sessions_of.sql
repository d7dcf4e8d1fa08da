-- All sessions of a person but the one that is kept.
update token
set revoked_at = now(), revoked_by = %(by)s
where user_name = %(user)s and revoked_at is null and expires_at > now() and token_id <> %(kept)s
