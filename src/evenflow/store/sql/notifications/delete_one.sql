-- What it has called before is sent all the same.
delete from notification_rule where name = %(name)s
