-- How many runs a DAG has, counted up to a bound. Reads at most that many entries of one index.
select count(*)::int as total
from (select from dag_run where dag_id = %(dag_id)s limit %(most)s) as counted
