-- The value of a setting, if it was set.
select value from setting where name = %(name)s
