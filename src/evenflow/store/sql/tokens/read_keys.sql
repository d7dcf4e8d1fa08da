-- All that minting and verifying tokens needs, as of one moment. Tokens that have expired need not be known as revoked; that they
-- have says their text, so they are in the list for as long as it knows them.
select coalesce((select jsonb_object_agg(key_id, encode(value, 'hex')) from token_key), '{}') as sealed_keys,
       array(select token_id from token where revoked_at is not null and expires_at > now()) as revoked,
       array(select token_id from token where good_until < now() and expires_at > now()) as lapsed,
       coalesce((select jsonb_object_agg(token_id, encode(digest, 'hex')) from token
                 where revoked_at is null and (kind <> 'session' or expires_at > now())), '{}') as listed,
       coalesce((select jsonb_object_agg(t.token_id, jsonb_build_object('role', lesser_role(lesser_role(u.role, l.role), t.role),
                                                                    'scope', coalesce(u.limited_to, l.limited_to, t.limited_to),
                                                                    'is_vouched', t.user_name is not null and u.subject is not null,
                                                                    'is_personal', t.user_name is not null))
                 from token t
                 left join token l on l.token_id = t.login_id
                 left join user_account u on u.name = coalesce(t.user_name, l.user_name)
                 where t.kind in ('operator', 'session') and t.revoked_at is null and (t.kind <> 'session' or t.expires_at > now())
                     and u.is_disabled is not true
                   and (coalesce(t.user_name, l.user_name) is null or u.name is not null)
                   and coalesce(u.role, l.role, t.role) is not null), '{}') as rights,
       coalesce(i.incarnation, 0) as incarnation,
       coalesce(extract(epoch from i.began_at + make_interval(secs => %(quiet_s)s) - now())::float8, 0) as quiet_s,
       (select id from installation) as installation
from (select) as always
left join (select * from incarnation order by incarnation desc limit 1) as i on true
