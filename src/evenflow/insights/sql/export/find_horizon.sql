-- Below which transaction nothing comes any more, and the time.
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as horizon, now() as at
