-- What is set aside, the latest first.
select q.kind, q.object, q.since, q.reason, r.dag_id, r.run_id
from quarantine q
left join dag_run r using (run_key)
order by q.since desc, q.kind, q.object
limit %(limit)s offset %(offset)s
