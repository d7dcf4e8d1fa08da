-- Bundles by name: what processors that live say of each, and how its files are.
with said as (
    select s.name as processor, s.service_id, s.host, b.state
    from service s
    cross join lateral jsonb_array_elements(s.detail -> 'bundles') as b (state)
    where s.kind = 'processor' and {{is_healthy}}
      and jsonb_typeof(s.detail -> 'bundles') = 'array'
), files as (
    select bundle, count(*)::int as files, (count(*) filter (where error is not null))::int as errors,
           (count(*) filter (where warnings is not null))::int as warned,
           (count(*) filter (where parsed is distinct from fingerprint))::int as waiting, max(parsed_at) as parsed_at
    from dag_file
    group by bundle
)
select jsonb_build_array(p.bundle, p.processor, p.service_id) as place, p.bundle as name, said.state, said.processor, said.host,
       coalesce(f.files, 0) as files, coalesce(f.errors, 0) as errors, coalesce(f.warned, 0) as warned,
           coalesce(f.waiting, 0) as waiting,
       f.parsed_at
from files f
full join said on said.state ->> 'name' = f.bundle
cross join lateral (
    select coalesce(f.bundle, said.state ->> 'name') as bundle, coalesce(said.processor, '') as processor,
        coalesce(said.service_id, 0) as service_id
) as p
where bundle_in_scope(%(scope)s::jsonb, p.bundle)
  and (%(after)s::jsonb is null
      or (p.bundle, p.processor, p.service_id) > (%(after)s::jsonb ->> 0, %(after)s::jsonb ->> 1, (%(after)s::jsonb ->> 2)::bigint))
order by p.bundle, p.processor, p.service_id
limit %(limit)s
