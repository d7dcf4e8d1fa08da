-- People by name; one of them when a name is given.
select name, role, limited_to as scope, is_disabled, created_at, created_by, logged_in_at
from user_account
where %(name)s::text is null or name = %(name)s
order by name
limit %(limit)s offset %(offset)s
