-- A run that cannot be decided about ends as failed. Its reports go, and the run of the DAG that waits for its place may begin.
with ended as (
    update dag_run
    set state = %(state)s::run_state, ended_at = now(), unfinished = 0, reason = %(reason)s, cancelled_by = %(actor)s,
        quarantined_at = null
    where run_key = %(run_key)s and state = any(%(live)s::run_state[])
    returning run_key, slot_limit
), forgotten as (
    delete from quarantine where run_key = %(run_key)s
), said as (
    delete from report where run_key = %(run_key)s
), timed as (
    delete from timer where run_key = %(run_key)s
), limits as (
    delete from concurrency_limit where run_key = %(run_key)s
), told as (
    insert into run_event (run_key, event, state, actor, detail)
    select run_key, %(event)s, %(state)s::run_state, %(actor)s, jsonb_build_object('reason', %(reason)s::text) from ended
)
insert into wake (limit_id, released) select slot_limit, 1 from ended where slot_limit is not null
