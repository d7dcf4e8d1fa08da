-- A code with which a browser begins a session; those that are over are forgotten. Of the code itself only the digest is kept.
with forgotten as (
    delete from login_code where expires_at < now()
)
insert into login_code (digest, name, token_id, expires_at)
values (%(digest)s, %(name)s, %(token_id)s, now() + make_interval(secs => %(ttl)s))
returning expires_at
