-- What the settings say of limits beside pools; null for a setting that was not set.
select (select value = 'true' from setting where name = %(task_limits)s),
       (select value = 'true' from setting where name = %(run)s),
       (select value = 'true' from setting where name = %(executor)s)
