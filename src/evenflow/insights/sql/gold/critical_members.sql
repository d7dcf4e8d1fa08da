-- Which tasks are on the critical path of how many runs of their DAG, and how much of these paths is theirs.
with of_dag as (
    select dag_id, count(distinct run_key) as runs, sum(us) as us from critical_paths group by dag_id
)
select c.dag_id, c.task_id, count(distinct c.run_key) as on_path, max(d.runs) as runs, sum(c.us) as us, coalesce(sum(c.us) / nullif(max(d.us), 0), 0) as share
from critical_paths c
join of_dag d on d.dag_id = c.dag_id
group by c.dag_id, c.task_id
