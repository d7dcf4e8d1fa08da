-- What waits, and what cannot: each counted by an index, up to a limit. What people want may wait for others
-- of its kind: it makes no report old.
select (select count(*)::int
    from (select from dag_run where state = 'queued'
    and (%(scope)s::jsonb is null or dag_id in (select dags_in_scope(%(scope)s::jsonb))) limit %(most)s) as q) as runs_queued,
       (select coalesce(sum(used), 0)::int from concurrency_limit where run_key = 0 and kind = 'dag_runs') as runs_running,
       (select count(*)::int from (
            (select from report where not held and kind not in ('cancel', 'operate') order by xact, report_id limit %(most)s)
            union all
            (select from report where not held and kind in ('cancel', 'operate') order by xact, report_id limit %(most)s)
            limit %(most)s) as r) as reports_waiting,
       (select extract(epoch from now() - at)::float8 from report
        where not held and kind not in ('cancel', 'operate') order by xact, report_id limit 1) as reports_oldest_s,
       (select count(*)::int from (select from dag_file where error is not null limit %(most)s) as f) as dag_files_broken
