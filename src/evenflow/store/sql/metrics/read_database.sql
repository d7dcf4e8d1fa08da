-- How PostgreSQL is: its sessions and what they do, sessions that wait for a lock, which snapshot holds back vacuum, how large it
-- is.
select pg_database_size(current_database()) as bytes,
       coalesce(extract(epoch from now() - min(xact_start) filter (where backend_xmin is not null)),
           0)::float8 as oldest_snapshot_s,
       count(*) filter (where wait_event_type = 'Lock')::int as lock_waits,
       count(*) filter (where state = 'active')::int as active,
       count(*) filter (where state = 'idle')::int as idle,
       count(*) filter (where state like 'idle in transaction%%')::int as idle_in_transaction
from pg_stat_activity
where datname = current_database() and backend_type = 'client backend'
