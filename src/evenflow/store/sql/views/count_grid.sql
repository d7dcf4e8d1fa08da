-- How many runs a DAG has, counted up to a bound. Reads so many entries of one index at most.
select count(*)::int as total
from (select from dag_run where dag_id = %(dag_id)s limit %(most)s) as counted
