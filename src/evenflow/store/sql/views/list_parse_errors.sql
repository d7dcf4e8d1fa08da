-- DAG files with errors, and whether a processor that lives reads them still.
with read as (
    select b.state ->> 'name' as bundle
    from service s
    cross join lateral jsonb_array_elements(s.detail -> 'bundles') as b (state)
    where s.kind = 'processor' and {{is_healthy}}
      and jsonb_typeof(s.detail -> 'bundles') = 'array'
)
select jsonb_build_array(bundle, file) as place, bundle, file, error, error_line, parsed_at,
    bundle in (select bundle from read) as is_read
from dag_file
where error is not null and bundle_in_scope(%(scope)s::jsonb, bundle)
  and (%(after)s::jsonb is null or (bundle, file) > (%(after)s::jsonb ->> 0, %(after)s::jsonb ->> 1))
order by bundle, file
limit %(limit)s
