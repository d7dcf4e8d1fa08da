-- Tries that ran far longer than their task does, those that are most worth a look first.
select dag_id, task_id, run_id, map_index, try_number, began_at, seconds, usual_s
from evenflow_reporting_v1.mart_anomalies
order by worth desc, began_at desc
limit %(most)s
