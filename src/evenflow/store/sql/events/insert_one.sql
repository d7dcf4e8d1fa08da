-- Somebody changed something. In the transaction of the change itself, as its last statement.
insert into audit_event (actor, action, object, detail)
values (%(actor)s, %(action)s, %(object)s, %(detail)s::jsonb)
