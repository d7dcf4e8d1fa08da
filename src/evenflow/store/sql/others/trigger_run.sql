-- A run that a task asks for, and in its history who did; nothing when the DAG has one with this name or this logical date.
with run as (
    insert into dag_run (dag_id, run_id, version_key, run_type, params, logical_date, data_interval_start, data_interval_end)
    values (%(dag_id)s, %(run_id)s, %(version_key)s, 'triggered', %(params)s::jsonb, %(logical_date)s, %(interval_start)s,
            %(interval_end)s)
    on conflict do nothing
    returning run_key
)
insert into run_event (run_key, event, state, actor, asker)
select run_key, 'triggered', 'queued', %(actor)s, %(asker)s::jsonb from run
