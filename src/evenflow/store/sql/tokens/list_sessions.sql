-- Sessions that are good, and command lines that are logged in as a user, the newest first: of one person, of one token, or of all
-- when neither is named; one of them when it is.
select jsonb_build_array(t.token_id) as place, t.token_id as session_id, t.name, t.kind = 'operator' as by_command,
    t.user_name is not null as by_password,
       lesser_role(lesser_role(u.role, l.role), t.role) as role, coalesce(u.limited_to, l.limited_to, t.limited_to) as scope,
           t.address, t.agent, t.created_at as began_at, t.used_at, t.expires_at
from token t
join token_key k on k.key_id = t.key_id
left join token l on l.token_id = t.login_id
left join user_account u on u.name = coalesce(t.user_name, l.user_name)
where (t.kind = 'session' or t.user_name is not null) and t.revoked_at is null and t.expires_at > now()
  and (t.login_id = 0 or l.revoked_at is null and least(l.expires_at, l.good_until) > now())
  and (%(user)s::text is null or t.user_name = %(user)s)
      and (%(login_id)s::bigint is null or t.user_name is null and t.login_id = %(login_id)s)
  and (%(session_id)s::bigint is null or t.token_id = %(session_id)s)
  and (%(after)s::jsonb is null or t.token_id < (%(after)s::jsonb ->> 0)::bigint)
order by t.token_id desc
limit %(limit)s
