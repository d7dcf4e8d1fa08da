-- Rules by name, or one of them.
select name, event, dags, scope, notifier, conn_id, signed_by, recipients, is_enabled, changed_at, changed_by
from notification_rule
where %(name)s::text is null or name = %(name)s
order by name
limit %(limit)s
