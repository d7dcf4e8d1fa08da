-- The sessions that may be in the way of a migration: those with the oldest transactions of this database.
select pid, application_name, extract(epoch from now() - xact_start)
from pg_stat_activity
where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
order by xact_start
limit 3
