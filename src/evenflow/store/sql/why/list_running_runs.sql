-- The runs of a DAG that run, the oldest first, looked for among its newest.
select run_id, started_at as since, count(*) over ()::int as held_by
from (
    select run_id, state, started_at from dag_run where dag_id = %(dag_id)s order by run_key desc limit %(searched)s
) as newest
where state = 'running'
order by started_at
limit %(named)s
