-- Services that live, or were heard of within the hour and have not been replaced by one of their kind and name.
select kind, name, host, pid, version, state, started_at, detail, extract(epoch from now() - beat_at)::float8 as beat_age_s,
       state in ('active', 'draining') and beat_at > now() - make_interval(secs => %(lease_s)s) as healthy
from service s
where state <> 'stopped' and beat_at > now() - interval '1 hour'
  and (state <> 'lost' or not exists (
      select from service o where o.kind = s.kind and o.name = s.name and o.service_id > s.service_id and o.state in ('active', 'draining')))
order by kind, name, service_id
limit %(limit)s
