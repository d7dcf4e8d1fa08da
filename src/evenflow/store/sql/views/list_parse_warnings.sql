-- DAG files that warned of something while they were loaded.
select bundle, file, warnings, parsed_at
from dag_file
where warnings is not null and bundle_in_scope(%(scope)s::jsonb, bundle)
order by bundle, file
limit %(limit)s offset %(offset)s
