-- Tokens that were given out, the newest first, and whether their key is still there.
select t.token_id, t.kind, t.name, t.scope, t.created_at, t.created_by, t.expires_at, t.revoked_at, t.revoked_by, t.key_id,
       case when t.revoked_at is not null then 'revoked' when t.expires_at < now() then 'expired' when k.key_id is null then 'void'
            else 'good' end as state
from token t
left join token_key k on k.key_id = t.key_id
order by t.token_id desc
