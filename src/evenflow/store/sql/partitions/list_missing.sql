-- Days from today (UTC) to a number of days after it for which history has no partition of its own, and when each begins.
select d.day
from generate_series(date_trunc('day', %(today)s::timestamptz, 'UTC'),
    date_trunc('day', %(today)s::timestamptz, 'UTC') + %(ahead)s * interval '24 hours',
                     interval '24 hours') as d (day)
where not exists (
    select from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'task_event'::regclass and c.relname = 'task_event_' || to_char(d.day at time zone 'UTC', 'YYYYMMDD'))
order by d.day
