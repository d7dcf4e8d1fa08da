-- A run that a person or a task requests; answers nothing when the DAG has a run with this name, or with this logical date. A
-- scheduler creates its tasks.
insert into dag_run (dag_id, run_id, version_key, run_type, params, logical_date, data_interval_start, data_interval_end, priority,
    note, traceparent)
values (%(dag_id)s, %(run_id)s, %(version_key)s, %(run_type)s, %(params)s::jsonb, %(logical_date)s, %(interval_start)s,
    %(interval_end)s, %(priority)s, %(note)s, %(traceparent)s)
on conflict do nothing
returning run_key
