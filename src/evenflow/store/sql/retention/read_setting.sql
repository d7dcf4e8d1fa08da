-- The time, and what a setting was set to, as far as somebody has set it.
select now(), (select value from setting where name = %(name)s)
