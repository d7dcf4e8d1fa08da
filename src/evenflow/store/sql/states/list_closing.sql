-- Which of these objects are not active, and the system, if it is not.
select s.kind, s.name, s.state, s.since, s.actor
from service_state s
where s.kind = 'system' or (s.kind, s.name) in (select * from unnest(%(kinds)s::text[], %(names)s::text[]))
order by s.kind, s.name
