-- A batch of events of triggers into the inbox, and of triggers that have failed for good. Whether they still count is for the
-- scheduler to say, by the epoch.
insert into report (run_key, kind, epoch, at, payload)
select run_key, 'event', epoch, now() - make_interval(secs => age_s), payload
from json_to_recordset(%(events)s::json) as g (run_key bigint, epoch bigint, age_s float8, payload jsonb)
