-- All fleets, or one.
select name, target, queues, policy, options, replicas, changed_at, changed_by
from fleet
where %(name)s::text is null or name = %(name)s
order by name
