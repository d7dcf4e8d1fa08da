-- The runs of a DAG that have one of these logical dates, and those that have one of these names. Two halves, so that each has its
-- index.
select run_key, run_id, logical_date, state::text as state
from dag_run
where dag_id = %(dag_id)s and logical_date = any(%(logical_dates)s::timestamptz[])
union
select run_key, run_id, logical_date, state::text as state
from dag_run
where dag_id = %(dag_id)s and run_id = any(%(run_ids)s::text[])
