-- Services that were lost within the hour and have not been replaced, by one of their kind and name or by their fleet: some of
-- them. As in views/list_services none of before the database was set back.
select kind, name, host
from service s
where state = 'lost' and pid <> 0 and beat_at > now() - interval '1 hour'
  and not exists (
      select from service o where o.kind = s.kind and o.name = s.name and o.service_id > s.service_id
          and o.state in ('active', 'draining'))
  and not {{replaced_by_fleet}}
  and not exists (select from incarnation i where i.went_back and i.began_at >= s.started_at)
order by kind, name
limit 10
