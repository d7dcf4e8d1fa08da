-- DAG files that warned of something while they were loaded.
select bundle, file, warnings, parsed_at
from dag_file
where warnings is not null
order by bundle, file
limit %(limit)s offset %(offset)s
