-- What a setting was set to, the newest first.
select version, value, changed_at, changed_by from setting_change where name = %(name)s
order by version desc
limit %(limit)s offset %(offset)s
