-- The other sessions of this database, by the names that their programs give.
select coalesce(nullif(application_name, ''), 'unnamed') as program, count(*)
from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
group by 1
order by 1
