-- People by name; one of them when a name is given.
select jsonb_build_array(name) as place, name, role, limited_to as scope, is_disabled, created_at, created_by, logged_in_at
from user_account
where (%(name)s::text is null or name = %(name)s) and (%(after)s::jsonb is null or name > %(after)s::jsonb ->> 0)
order by name
limit %(limit)s
