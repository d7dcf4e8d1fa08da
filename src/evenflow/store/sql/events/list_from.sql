-- Events by their number, to be compared with what was exported.
select event_id, xact::text::bigint as xact, at, actor, action, object, detail, token_id, address, request_id, counted_as, times,
    last_at
from audit_event
where event_id > %(event_id)s
order by event_id
limit %(limit)s
