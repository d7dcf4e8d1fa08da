-- Sealed values of a kind by name.
select jsonb_build_array(name) as place, name, sealed, description, dags, changed_at, changed_by
from sealed_value
where kind = %(kind)s and (%(after)s::jsonb is null or name > %(after)s::jsonb ->> 0)
order by name
limit %(limit)s
