-- The settings that were set.
select name, version, value, changed_at, changed_by from setting order by name
