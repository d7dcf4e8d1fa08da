-- These DAGs are looked at for queued runs that may begin.
select wake_runs(%(dag_ids)s::text[])
