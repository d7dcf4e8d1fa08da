-- The clock of all leases, for the one scheduler that ticks it now, and when an API server was heard last. SKIP LOCKED: while
-- another ticks it this one need not. The time is read after the lock, so it is not before a tick that is there.
select extract(epoch from clock_timestamp())::float8 as now_s,
       extract(epoch from ticked_at)::float8 as ticked_at_s,
       extract(epoch from counted_from)::float8 as counted_from_s,
       (select extract(epoch from max(beat_at))::float8 from service where kind = 'api'
           and state in ('active', 'draining')) as api_heard_at_s
from lease_clock
for no key update skip locked
