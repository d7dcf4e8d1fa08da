-- A task has a run of another DAG cleared: an operation for the schedulers, and in its history who did.
with asked as (
    insert into report (run_key, kind, epoch, payload) values (%(run_key)s, 'operate', 0, %(operation)s::jsonb)
)
insert into run_event (run_key, event, state, actor, asker)
select run_key, 'reset', state, %(actor)s, %(asker)s::jsonb from dag_run where run_key = %(run_key)s
