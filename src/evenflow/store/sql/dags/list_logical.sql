-- The runs of a DAG whose logical dates are in a stretch of time, the first ones.
select run_id
from dag_run
where dag_id = %(dag_id)s and logical_date >= %(begin)s and logical_date < %(past)s
order by logical_date
limit %(limit)s
