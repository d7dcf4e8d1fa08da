-- Tokens that were given out, the newest first, and whether they are good: void is one whose key is gone. Of one kind or in one
-- state when these are named.
select * from (
    select jsonb_build_array(t.token_id) as place, t.token_id, t.kind, t.name,
        lesser_role(lesser_role(u.role, l.role), t.role) as role,
           coalesce(u.limited_to, l.limited_to, t.limited_to) as scope, t.scope as serves,
           case when t.revoked_at is not null then 'revoked' when least(t.expires_at, t.good_until) < now() then 'expired'
                when k.key_id is null then 'void' else 'good' end as state,
           t.created_at, t.created_by, t.used_at, least(t.expires_at, t.good_until) as expires_at,
           t.good_until is not null as is_renewed, t.key_id, t.revoked_by
    from token t
    left join token_key k on k.key_id = t.key_id
    left join token l on l.token_id = t.login_id
    left join user_account u on u.name = coalesce(t.user_name, l.user_name)
    where (%(kind)s::text is null or t.kind = %(kind)s)
        and (%(after)s::jsonb is null or t.token_id < (%(after)s::jsonb ->> 0)::bigint)
) given
where %(state)s::text is null or state = %(state)s
order by token_id desc
limit %(limit)s::bigint
