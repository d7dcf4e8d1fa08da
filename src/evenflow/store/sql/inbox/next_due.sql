-- Seconds until the next timer, null when there is none.
select extract(epoch from min(due_at) - now())::float8 from timer where not held
