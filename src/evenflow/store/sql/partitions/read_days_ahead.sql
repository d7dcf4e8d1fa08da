-- For how many days after today (UTC) history has its partition, without a gap; -1 when today has none.
select coalesce(min(d.ahead) - 1, %(most)s::int)::int as days_ahead
from generate_series(0, %(most)s::int) as d (ahead)
where not exists (
    select from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'task_event'::regclass
      and c.relname = 'task_event_' || to_char((now() at time zone 'UTC') + d.ahead * interval '1 day', 'YYYYMMDD'))
