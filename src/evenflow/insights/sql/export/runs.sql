-- The runs that some transactions wrote of. Only what never changes of them, so that an export that is repeated is the same.
select run_key, dag_id, run_id, version_key, run_type, run_after, created_at
from evenflow_reporting_v1.runs
where run_key in (
    select run_key from evenflow_reporting_v1.run_events where xact >= %(first)s and xact < %(past)s
    union
    select run_key from evenflow_reporting_v1.task_events where xact >= %(first)s and xact < %(past)s
)
order by run_key
