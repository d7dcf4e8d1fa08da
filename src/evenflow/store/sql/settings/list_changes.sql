-- What a setting was set to, the newest first.
select jsonb_build_array(version) as place, version, value, changed_at, changed_by
from setting_change
where name = %(name)s and (%(after)s::jsonb is null or version < (%(after)s::jsonb ->> 0)::bigint)
order by version desc
limit %(limit)s
