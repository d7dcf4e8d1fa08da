-- Events that come often, each a row of its period with a count, and with what the last one said. Always in the order of what they
-- are counted as, so that two API processes do not wait for each other in a circle.
insert into audit_event (actor, action, object, detail, token_id, address, counted_as, times, last_at)
select actor, action, object, detail, token_id, address, counted_as, times, now()
from jsonb_to_recordset(%(events)s::jsonb)
     as e (actor text, action text, object text, detail jsonb, token_id bigint, address text, counted_as text, times bigint)
order by counted_as
on conflict (counted_as) where counted_as is not null do update
set times = audit_event.times + excluded.times, detail = excluded.detail, token_id = excluded.token_id, address = excluded.address,
    last_at = excluded.last_at, xact = excluded.xact
