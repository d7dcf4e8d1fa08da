-- The runs of a DAG that have one of these logical dates.
select run_key, run_id, logical_date, state::text as state
from dag_run
where dag_id = %(dag_id)s and logical_date = any(%(logical_dates)s::timestamptz[])
