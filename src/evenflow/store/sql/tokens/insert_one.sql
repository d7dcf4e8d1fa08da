-- A token that is about to be minted; those that expired a day ago are forgotten, when no service that came with one is there any
-- more: such a service says so once an hour, and its own token is good for a day.
with forgotten as (
    delete from token where expires_at < now() - interval '1 day' and coalesce(used_at, created_at) < now() - interval '2 days'
)
insert into token (kind, name, scope, role, limited_to, user_name, address, agent, created_by, expires_at, good_until, key_id,
    digest)
values (%(kind)s, %(name)s, %(scope)s, %(role)s, %(limited_to)s::jsonb, %(user)s, %(address)s, %(agent)s, %(by)s,
    now() + make_interval(secs => %(ttl)s), now() + make_interval(secs => %(lease)s),
        %(key_id)s, %(digest)s)
returning token_id, expires_at
