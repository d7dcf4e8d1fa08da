-- Events in the order of the transactions that wrote them, behind this one: of those that have ended, before which none can come
-- any more. One that stands for many is of the moment of its last one.
select event_id, xact::text::bigint as xact, at, actor, action, object, detail, token_id, address, request_id, counted_as, times,
    last_at
from audit_event
where (xact, event_id) > (%(xact)s::text::xid8, %(event_id)s) and xact < pg_snapshot_xmin(pg_current_snapshot())
  and (%(since)s::timestamptz is null or coalesce(last_at, at) >= %(since)s)
  and (%(until)s::timestamptz is null or coalesce(last_at, at) < %(until)s)
order by xact, event_id
limit %(limit)s
