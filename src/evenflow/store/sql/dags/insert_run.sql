-- A run that somebody asks for; answers nothing when the DAG has one with this name. A scheduler creates its tasks.
insert into dag_run (dag_id, run_id, version_key, run_type, params, logical_date, priority)
values (%(dag_id)s, %(run_id)s, %(version_key)s, 'manual', %(params)s::jsonb, %(logical_date)s, %(priority)s)
on conflict (dag_id, run_id) do nothing
returning run_key
