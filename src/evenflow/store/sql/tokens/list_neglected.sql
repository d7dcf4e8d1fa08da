-- Tokens that are good for long, or were not used for long: those of people, who may have forgotten them.
select token_id, kind, name, expires_at > now() + make_interval(days => %(long_days)s) as is_long, expires_at::date,
       coalesce(used_at, created_at) < now() - make_interval(days => %(unused_days)s) as is_unused
from token
where revoked_at is null and good_until is null and expires_at > now()
  and (expires_at > now() + make_interval(days => %(long_days)s)
       or coalesce(used_at, created_at) < now() - make_interval(days => %(unused_days)s))
order by token_id
limit %(limit)s
