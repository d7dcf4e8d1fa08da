-- A file with an error that may define a DAG: by what is known of it, by its name, or because the error names the DAG.
select file
from dag_file
where error is not null
  and (%(wanted)s = any(wants) or regexp_replace(file, '^.*/|\.py$', '', 'g') = %(wanted)s
       or position(quote_literal(%(wanted)s::text) in error) > 0 or position(concat('"', %(wanted)s::text, '"') in error) > 0)
order by %(wanted)s = any(wants) desc nulls last, file
limit 1
