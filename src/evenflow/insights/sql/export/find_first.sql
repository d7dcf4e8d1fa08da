-- The oldest transaction that wrote history, the one to begin with. Reads all of it, once.
select least((select min(xact) from evenflow_reporting_v1.task_events), (select min(xact) from evenflow_reporting_v1.run_events)) as first
