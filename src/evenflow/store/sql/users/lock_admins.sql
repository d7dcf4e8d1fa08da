-- Locks admins: changes of people wait here for each other, or two might take the last two admins away at one moment.
select name from user_account where role = 'admin' and not is_disabled order by name for update
