-- What the settings say of limits that are no pools; null where nobody has set one.
select (select value = 'true' from setting where name = %(task_limits)s),
       (select value = 'true' from setting where name = %(run)s),
       (select value = 'true' from setting where name = %(executor)s)
