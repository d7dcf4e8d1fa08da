-- The runs that a DAG has of these logical dates.
select logical_date, run_id, state::text
from dag_run
where dag_id = %(dag_id)s and logical_date between %(from_date)s and %(to_date)s
