-- Seconds until the next timer or scheduled run, null when there is none.
select extract(epoch from least(
    (select min(due_at) from timer),
    (select min(next_run_at) from dag where next_run_at is not null)) - now())::float8
