-- Another fleet that serves one of these queues.
select name, queues from fleet where name <> %(name)s and queues && %(queues)s::text[] order by name limit 1
