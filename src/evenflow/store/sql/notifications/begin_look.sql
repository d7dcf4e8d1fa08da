-- The first rule is for what happens from now on: while there was none, history was not looked at.
update history_look set snapshot = pg_current_snapshot()
where reader = %(reader)s and not exists (select from notification_rule where is_enabled)
