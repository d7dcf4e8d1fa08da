-- A change by a person. In the transaction of the change itself, as its last statement.
insert into audit_event (actor, action, object, detail, token_id, address, request_id)
values (%(actor)s, %(action)s, %(object)s, %(detail)s::jsonb, %(token_id)s, %(address)s, %(request_id)s)
