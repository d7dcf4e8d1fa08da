-- What somebody has set a setting to.
select value from setting where name = %(name)s
