-- Deletes those of these runs that have ended, with all that there is of them, and has their logs deleted; answers their names.
-- Runs that wait for tasks of them are told to look again. Locked FOR UPDATE, in order: no scheduler takes them up meanwhile. What
-- there is much of in a run of very many instances, or values, is left to retention/delete_garbage. History of theirs may be left
-- to the end of its partition.
with gone as materialized (
    select run_key, dag_id, run_id
    from dag_run
    where run_key = any(%(run_keys)s::bigint[]) and state in ('success', 'failed')
    order by run_key
    for update
), large as materialized (
    select run_key from gone
    where %(whole)s::int < (select count(*)
        from (select from task_instance t where t.run_key = gone.run_key limit %(whole)s::int + 1) as first_ones)
       or %(whole)s::int < (select count(*)
           from (select from xcom x where x.run_key = gone.run_key limit %(whole)s::int + 1) as first_values)
), left_over as (
    insert into run_garbage (run_key) select run_key from large
), small as materialized (
    select run_key from gone where run_key not in (select run_key from large)
), told as (
    insert into report (run_key, kind, epoch, payload)
    select w.waiter_run, 'past', r.clears, jsonb_build_object('task', w.waiter_task)
    from past_watch w
    join gone using (run_key)
    join dag_run r on r.run_key = w.waiter_run
), watches as (
    delete from past_watch x using gone where x.run_key = gone.run_key
), gates as (
    delete from past_gate x using gone where x.run_key = gone.run_key
), held as (
    delete from past_hold x using gone where x.run_key = gone.run_key
), made_by as (
    delete from run_asset_event x using gone where x.run_key = gone.run_key
), logs as (
    insert into log_garbage (dag_id, run_id) select dag_id, run_id from gone on conflict do nothing
), decisions as (
    delete from branch_decision x using gone where x.run_key = gone.run_key
), templates as (
    delete from rendered x using small where x.run_key = small.run_key
), once as (
    delete from once_value x using small where x.run_key = small.run_key
), records as (
    delete from try_record x using small where x.run_key = small.run_key
), results as (
    delete from xcom x using small where x.run_key = small.run_key
), progress as (
    delete from task_progress x using gone where x.run_key = gone.run_key
), timers as (
    delete from timer x using gone where x.run_key = gone.run_key
), reports as (
    delete from report x using gone where x.run_key = gone.run_key
), limits as (
    delete from concurrency_limit x using gone where x.run_key = gone.run_key
), mapped as (
    delete from mapped_task x using gone where x.run_key = gone.run_key
), counters as (
    delete from upstream_counter x using gone where x.run_key = gone.run_key
), instances as (
    delete from task_instance x using small where x.run_key = small.run_key
), task_history as (
    delete from task_event x using small where x.run_key = small.run_key and %(history)s::boolean
), strays as (
    delete from task_event_default x using small where x.run_key = small.run_key and not %(history)s::boolean
), run_history as (
    delete from run_event x using gone where x.run_key = gone.run_key
)
delete from dag_run r using gone where r.run_key = gone.run_key returning r.run_id
