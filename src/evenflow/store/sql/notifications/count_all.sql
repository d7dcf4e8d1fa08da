-- Of the others: one of this name may be changed.
select count(*) from notification_rule where name <> %(name)s
