-- What is set aside, the latest first.
select q.kind, q.object, q.since, q.reason, r.dag_id, r.run_id
from quarantine q
left join dag_run r using (run_key)
where %(scope)s::jsonb is null or r.dag_id in (select dags_in_scope(%(scope)s::jsonb))
order by q.since desc, q.kind, q.object
limit %(limit)s offset %(offset)s
