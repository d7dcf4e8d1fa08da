-- How the database is: its version and size, what waits in the inbox (10,000 are counted at most), and how old the oldest snapshot
-- is that holds back vacuum. What people want may wait for others of its kind: it makes no report old.
select (select max(version) from schema_version) as schema_version,
       current_setting('server_version') as server_version,
       pg_database_size(current_database()) as database_bytes,
       (select count(*)::int from (
            (select from report where not held and kind not in ('cancel', 'operate') order by xact, report_id limit 10000)
            union all
            (select from report where not held and kind in ('cancel', 'operate') order by xact, report_id limit 10000)
            limit 10000) as r) as inbox,
       (select extract(epoch from now() - at)::float8 from report
        where not held and kind not in ('cancel', 'operate') order by xact, report_id limit 1) as oldest_report_s,
       extract(epoch from now() - (
           select min(xact_start) from pg_stat_activity where datname = current_database() and backend_xmin is not null
       ))::float8 as oldest_snapshot_s
