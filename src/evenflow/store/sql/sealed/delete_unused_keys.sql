-- Forgets what was sealed with other keys if nothing is lost by it: nothing else is sealed, no other API runs, and no token that is
-- still good needs a key that cannot be opened.
with unused as (
    select
    where not exists (select from sealed_value where kind <> 'canary')
      and not exists (select from service where kind = 'api' and state in ('active', 'draining'))
      and (%(fit)s or not exists (select from token t join token_key using (key_id) where t.revoked_at is null
          and t.expires_at > now()))
), canary as (
    delete from sealed_value where kind = 'canary' and exists (select from unused)
)
delete from token_key where not %(fit)s and exists (select from unused)
