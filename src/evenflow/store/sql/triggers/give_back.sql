-- Triggers that a triggerer gives back, each in the claim that is said, so that another may claim them at once; wakes triggerers.
-- SKIP LOCKED: a trigger that another statement has locked resumes its task or is freed by that.
with given as materialized (
    select d.run_key, d.task_index, d.map_index
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(epochs)s::bigint[], %(claims)s::int[])
         as g (run_key, task_index, map_index, epoch, claim_number)
    join deferral d using (run_key, task_index, map_index, epoch, claim_number)
    where d.triggerer_id is not null and d.purpose is null
    for no key update of d skip locked
), released as (
    update deferral d set triggerer_id = null, claim_key = null
    from given
    where d.run_key = given.run_key and d.task_index = given.task_index and d.map_index = given.map_index
    returning d.epoch
)
select pg_notify('triggers', '') where exists (select from released)
