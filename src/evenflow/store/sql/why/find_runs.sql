-- Runs of this name, then those whose logical dates are in a stretch of time; of one DAG, or of whatever DAG: two probes of indexes
-- for each.
select r.dag_id, r.run_id, r.state::text as state
from dag d
cross join lateral (
    select dag_id, run_id, state, logical_date from dag_run where dag_run.dag_id = d.dag_id and dag_run.run_id = %(run_id)s
    union
    (select dag_id, run_id, state, logical_date
     from dag_run
     where dag_run.dag_id = d.dag_id and logical_date >= %(begin)s and logical_date < %(past)s
     order by logical_date
     limit %(limit)s)
) as r
where (%(dag_id)s::text is null or d.dag_id = %(dag_id)s)
    and (%(scope)s::jsonb is null or d.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
order by r.run_id <> %(run_id)s, r.dag_id, r.logical_date
limit %(limit)s
