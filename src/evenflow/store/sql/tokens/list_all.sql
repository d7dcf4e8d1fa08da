-- Tokens that were given out, the newest first, and whether their key is still there.
select t.token_id, t.kind, t.name, t.scope, lesser_role(lesser_role(u.role, l.role), t.role) as role,
       coalesce(u.limited_to, l.limited_to, t.limited_to) as limited_to, t.created_at, t.created_by, least(t.expires_at, t.good_until) as expires_at, t.revoked_at, t.revoked_by, t.key_id,
       case when t.revoked_at is not null then 'revoked' when least(t.expires_at, t.good_until) < now() then 'expired'
            when k.key_id is null then 'void' else 'good' end as state,
       t.good_until is not null as is_renewed, t.used_at
from token t
left join token_key k on k.key_id = t.key_id
left join token l on l.token_id = t.login_id
left join user_account u on u.name = coalesce(t.user_name, l.user_name)
order by t.token_id desc
