-- Triggers of triggerers that are lost or have stopped: any may claim them now. Wakes triggerers; answers how many. SKIP LOCKED:
-- what a scheduler or another release is just at is found by the next look.
with gone as materialized (
    select d.run_key, d.task_index, d.map_index
    from service s
    join deferral d on d.triggerer_id = s.service_id
    where s.kind = 'triggerer' and s.state in ('lost', 'stopped') and not s.settled and d.purpose is null
    for no key update of d skip locked
), released as (
    update deferral d set triggerer_id = null, claim_key = null
    from gone
    where d.run_key = gone.run_key and d.task_index = gone.task_index and d.map_index = gone.map_index
    returning d.epoch
)
select count(*), max(pg_notify('triggers', '')::text) from released having count(*) > 0
