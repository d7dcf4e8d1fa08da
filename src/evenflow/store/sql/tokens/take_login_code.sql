-- A code is good once: of two that show it at one moment, to whichever API server, one finds the row. That of a token that is over
-- is good for nothing either.
delete from login_code c
where digest = %(digest)s
returning c.name, c.token_id,
          c.expires_at > now() and (c.token_id = 0 or exists (
              select from token t where t.token_id = c.token_id and t.revoked_at is null
                  and least(t.expires_at, t.good_until) > now()
          )) as is_good
