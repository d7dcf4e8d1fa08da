-- Of the command lines that are logged in as this user the oldest end, when there would be too many: every API server reads the
-- list of all.
update token
set revoked_at = now(), revoked_by = %(user)s
where token_id in (
    select token_id from token
    where kind = 'operator' and user_name = %(user)s and revoked_at is null and expires_at > now()
    order by token_id desc
    offset %(most)s - 1)
