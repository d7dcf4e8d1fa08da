-- Sealed values of a kind by name.
select name, sealed, description, dags, changed_at, changed_by
from sealed_value
where kind = %(kind)s
order by name
limit %(limit)s offset %(offset)s
