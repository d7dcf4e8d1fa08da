-- By day, DAG and cause, and the limit where it was one: how often and how long task instances were in it.
select day, dag_id, cause, limit_name, count(*) as times, sum(us) as us
from segments
group by day, dag_id, cause, limit_name
