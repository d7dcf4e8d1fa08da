-- How much of each kind is set aside.
select q.kind, count(*)::int as n
from quarantine q
left join dag_run r using (run_key)
where %(scope)s::jsonb is null or r.dag_id in (select dags_in_scope(%(scope)s::jsonb))
group by q.kind
