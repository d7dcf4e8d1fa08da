-- Services that live, or were heard of within the hour.
select kind, name, host, pid, version, state, started_at, detail, extract(epoch from now() - beat_at)::float8 as beat_age_s,
       state in ('active', 'draining') and beat_at > now() - make_interval(secs => %(lease_s)s) as healthy
from service
where state <> 'stopped' and beat_at > now() - interval '1 hour'
order by kind, name, service_id
limit %(limit)s
