-- DAG files that warned of something while they were loaded.
select jsonb_build_array(bundle, file) as place, bundle, file, warnings, parsed_at
from dag_file
where warnings is not null and bundle_in_scope(%(scope)s::jsonb, bundle)
  and (%(after)s::jsonb is null or (bundle, file) > (%(after)s::jsonb ->> 0, %(after)s::jsonb ->> 1))
order by bundle, file
limit %(limit)s
