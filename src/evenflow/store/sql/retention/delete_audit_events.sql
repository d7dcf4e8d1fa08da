-- Deletes old records of changes and their actors, as far as they are among the very first.
with first as (
    select event_id, at from audit_event order by event_id limit %(limit)s
)
delete from audit_event e
using first f
where e.event_id = f.event_id and f.at < %(before)s
returning e.event_id
