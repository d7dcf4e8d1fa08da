-- How the database is: its version and size, what waits in the inbox, and how old the oldest snapshot is that holds back vacuum.
select (select max(version) from schema_version) as schema_version,
       current_setting('server_version') as server_version,
       pg_database_size(current_database()) as database_bytes,
       (select count(*)::int from report) as inbox,
       extract(epoch from now() - (select min(at) from report))::float8 as oldest_report_s,
       extract(epoch from now() - (
           select min(xact_start) from pg_stat_activity where datname = current_database() and backend_xmin is not null
       ))::float8 as oldest_snapshot_s
