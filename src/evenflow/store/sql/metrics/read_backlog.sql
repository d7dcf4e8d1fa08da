-- What waits, and what cannot: each counted by an index, and no further than so many.
select (select count(*)::int from (select from dag_run where state = 'queued' limit %(most)s) as q) as runs_queued,
       (select coalesce(sum(used), 0)::int from concurrency_limit where run_key = 0 and kind = 'dag_runs') as runs_running,
       (select count(*)::int from (select from report where not held order by report_id limit %(most)s) as r) as reports_waiting,
       (select extract(epoch from now() - at)::float8 from report where not held order by report_id limit 1) as reports_oldest_s,
       (select count(*)::int from (select from dag_file where error is not null limit %(most)s) as f) as dag_files_broken
