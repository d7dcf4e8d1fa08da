-- Services that live, or were heard of within the hour and have not been replaced, by one of their kind and name or by their fleet.
-- What they say of themselves names queues and bundles: no scope includes it. Of a database that was set back only those count that
-- have registered since; pid 0 belongs to no process, see incarnation/begin.
select kind, name, host, pid, version, state, started_at, case when %(scope)s::jsonb is null then detail else '{}' end as detail,
    extract(epoch from now() - beat_at)::float8 as beat_age_s,
       {{is_healthy}} as healthy
from service s
where state <> 'stopped' and pid <> 0 and beat_at > now() - interval '1 hour'
  and (state <> 'lost' or not exists (
      select from service o where o.kind = s.kind and o.name = s.name and o.service_id > s.service_id
          and o.state in ('active', 'draining')))
  and (state <> 'lost' or not {{replaced_by_fleet}})
  and (state <> 'lost' or not exists (select from incarnation i where i.went_back and i.began_at >= s.started_at))
order by kind, name, service_id
limit %(limit)s
