-- Puts runs into quarantine, with their history, except those that are there; answers how many. Locked NO KEY UPDATE, in order: a
-- transaction that applies something to one has just failed, or waits for the next turn.
with found as materialized (
    select run_key, dag_id, run_id, state
    from dag_run
    where run_key = any(%(run_keys)s::bigint[]) and quarantined_at is null
    order by run_key
    for no key update
), marked as (
    update dag_run r set quarantined_at = now() from found where r.run_key = found.run_key
), told as (
    insert into run_event (run_key, event, state, actor, detail)
    select run_key, 'quarantine', state, 'scheduler', jsonb_build_object('reason', %(reason)s::text) from found
)
insert into quarantine (kind, object, run_key, reason)
select 'run', concat(dag_id, '/', run_id), run_key, %(reason)s from found
on conflict (kind, object) do update set run_key = excluded.run_key, since = now(), reason = excluded.reason
