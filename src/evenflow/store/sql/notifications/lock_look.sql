-- One scheduler at a time looks for what is to be told; and only where there is a rule. The next statement, under this lock, sees
-- what the look before has written.
select from history_look
where reader = %(reader)s and exists (select from notification_rule where is_enabled)
for update skip locked
