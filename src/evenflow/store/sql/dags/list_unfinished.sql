-- The runs of a DAG that have not ended and whose end was not requested, of one state or of both, up to a limit, the oldest first.
select r.run_key
from dag_run r
where r.dag_id = %(dag_id)s and r.state in ('queued', 'running') and r.cancelled_by is null
  and (%(state)s::text is null or r.state::text = %(state)s)
  and not exists (select from report p where p.run_key = r.run_key and p.epoch = 0 and p.kind = 'cancel')
order by r.run_key
limit %(limit)s
