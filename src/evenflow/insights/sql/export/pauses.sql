-- When DAGs were paused and unpaused.
select dag_id, at, is_paused from evenflow_reporting_v1.pauses where at < %(until)s order by dag_id, at
