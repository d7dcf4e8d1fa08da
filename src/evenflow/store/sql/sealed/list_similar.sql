-- Names about as long as one that is not defined, and who may use them: among them is the one that was meant.
select name, dags
from sealed_value
where kind = %(kind)s and length(name) between length(%(wanted)s::text) - 3 and length(%(wanted)s::text) + 3
order by name
limit %(limit)s
