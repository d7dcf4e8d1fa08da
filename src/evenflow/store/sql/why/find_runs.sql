-- Runs of this name, of whatever DAG: one probe of the index for each DAG.
select r.dag_id, r.run_id, r.state::text as state
from dag d
cross join lateral (select * from dag_run where dag_run.dag_id = d.dag_id and dag_run.run_id = %(run_id)s offset 0) as r
order by r.dag_id
limit %(limit)s
