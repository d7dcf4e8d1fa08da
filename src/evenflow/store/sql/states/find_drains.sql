-- Something that drains, if anything does.
select kind, name from service_state where state = 'draining' limit 1
