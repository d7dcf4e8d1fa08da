-- A session that is about to be minted. It expires no later than the token that it is begun with, if it is begun with one.
insert into token (kind, name, role, user_name, login_id, address, agent, created_by, expires_at, key_id, digest)
values ('session', %(name)s, %(role)s, %(user)s, %(login_id)s, %(address)s, %(agent)s, %(name)s,
        least(now() + make_interval(secs => %(ttl)s), (select expires_at from token where token_id = %(login_id)s)),
        %(key_id)s, %(digest)s)
returning token_id, expires_at
