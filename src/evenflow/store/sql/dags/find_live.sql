-- Which of these DAGs have a run that runs or waits.
select d.dag_id
from unnest(%(dag_ids)s::text[]) as d (dag_id)
where exists (select from dag_run r where r.dag_id = d.dag_id and r.state in ('queued', 'running'))
