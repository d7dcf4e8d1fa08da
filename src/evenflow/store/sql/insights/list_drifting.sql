-- Tasks whose tries run longer or shorter than before, those that are most worth a look first.
select dag_id, task_id, tries, p50_s, drift
from evenflow_reporting_v1.mart_durations
where worth is not null
order by worth desc, dag_id, task_id
limit %(most)s
