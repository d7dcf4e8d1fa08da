-- A run, and where asked for the runs of its DAG before and after it: by logical date, or by when they were due where there is
-- none.
with asked as (
    select run_key, coalesce(logical_date, run_after) as at from dag_run where dag_id = %(dag_id)s and run_id = %(run_id)s
)
select r.run_key, r.run_id, r.state::text, r.version_key, r.state = 'queued' and r.clears = 0 as unbegun,
       r.cancelled_by is not null and r.state in ('queued', 'running') as being_cancelled,
       r.state = 'failed' and r.clears = 0 and r.started_at is null as never_began,
       r.state = 'failed' and r.marked_failed_by is not null as marked_failed
from asked a
join dag_run r on r.dag_id = %(dag_id)s
where r.run_key = a.run_key
   or %(past)s and coalesce(r.logical_date, r.run_after) < a.at
   or %(future)s and coalesce(r.logical_date, r.run_after) > a.at
order by r.run_key = a.run_key desc, r.run_key
limit %(limit)s
