-- The settings that somebody has set.
select name, value, changed_at, changed_by, version from setting order by name
