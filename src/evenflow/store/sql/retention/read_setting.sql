-- The time, and the value of a setting, if it was set.
select now(), (select value from setting where name = %(name)s)
