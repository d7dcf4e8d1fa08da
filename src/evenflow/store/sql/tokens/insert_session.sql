-- A session that is about to be minted. It expires no later than the token that it is begun with, if it is begun with one. Those
-- that expired a day ago are forgotten, and of one person or token the oldest end when there are too many: every API server reads
-- the list of all.
with forgotten as (
    delete from token where kind = 'session' and expires_at < now() - interval '1 day'
), crowded as (
    update token set revoked_at = now(), revoked_by = %(name)s
    where token_id in (
        select token_id from token
        where kind = 'session' and revoked_at is null and expires_at > now()
          and user_name is not distinct from %(user)s::text and login_id = %(login_id)s
        order by token_id desc
        offset %(most)s - 1)
)
insert into token (kind, name, role, user_name, login_id, address, agent, created_by, expires_at, key_id, digest)
values ('session', %(name)s, %(role)s, %(user)s, %(login_id)s, %(address)s, %(agent)s, %(name)s,
        least(now() + make_interval(secs => %(ttl)s), (select expires_at from token where token_id = %(login_id)s)),
        %(key_id)s, %(digest)s)
returning token_id, expires_at
