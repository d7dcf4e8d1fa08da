-- Whether one of these DAGs has a run that runs or waits.
select exists (select from dag_run where dag_id = any(%(dag_ids)s::text[]) and state in ('queued', 'running'))
