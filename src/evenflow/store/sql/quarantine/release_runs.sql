-- Runs leave quarantine: their reports count again, in order, and their lanes open, or are those of a paused DAG. The caller holds
-- the executor's lock. NO KEY UPDATE: as in quarantine/put_runs. Answers how many.
with found as materialized (
    select r.run_key, r.state, d.pause_applied
    from dag_run r
    join dag d using (dag_id)
    where r.run_key = any(%(run_keys)s::bigint[]) and r.quarantined_at is not null
    order by r.run_key
    for no key update of r
), marked as (
    update dag_run r set quarantined_at = null from found where r.run_key = found.run_key
), forgotten as (
    delete from quarantine q using found where q.run_key = found.run_key
), said as (
    update report p set held = false, xact = pg_current_xact_id() from found where p.run_key = found.run_key and p.held
), late as (
    update timer t set held = false from found where t.run_key = found.run_key and t.held
), opened as (
    update lane l set parked_on = case when found.pause_applied and not l.exempt then -1 else 0 end, since = now()
    from found
    where l.run_key = found.run_key and l.parked_on = -3
), woken as (
    insert into wake (limit_id, released) select 0, 0 from found limit 1
)
insert into run_event (run_key, event, state, actor) select run_key, 'release', state, %(actor)s from found
