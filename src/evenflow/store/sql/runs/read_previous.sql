-- The last successful run of the DAG before this one, by logical date: a run without one does not count as a previous run, and
-- itself counts by the time at which it was to run.
select p.data_interval_start, p.data_interval_end, p.started_at, p.ended_at
from dag_run r
cross join lateral (
    select *
    from dag_run
    where dag_id = r.dag_id and state = 'success' and logical_date < coalesce(r.logical_date, r.run_after)
    order by logical_date desc
    limit 1
) as p
where r.run_key = %(run_key)s
