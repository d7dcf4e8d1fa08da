-- The last successful run of the DAG before this one: by logical date, a run without one counting as of when it was to run.
select p.data_interval_start, p.data_interval_end, p.started_at, p.ended_at
from dag_run r
join dag_run p on p.dag_id = r.dag_id and p.state = 'success' and p.run_key <> r.run_key
              and coalesce(p.logical_date, p.run_after) < coalesce(r.logical_date, r.run_after)
where r.run_key = %(run_key)s
order by coalesce(p.logical_date, p.run_after) desc
limit 1
