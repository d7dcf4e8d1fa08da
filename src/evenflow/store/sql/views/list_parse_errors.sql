-- DAG files with errors.
select bundle, file, error, error_line, parsed_at
from dag_file
where error is not null
order by bundle, file
limit %(limit)s offset %(offset)s
