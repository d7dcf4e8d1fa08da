-- Tasks whose tries run a quarter longer or shorter than before, the longest first.
select dag_id, task_id, tries, p50_s, drift
from evenflow_reporting_v1.mart_durations
where drifts
order by p50_s desc, dag_id, task_id
limit %(most)s
