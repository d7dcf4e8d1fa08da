-- Triggers that failed, each in the claim that is said, are given back, and not to be claimed again before a pause that doubles
-- with each failure. Failures long after the claim began begin a new count: it had worked. Answers how often each has failed now.
-- SKIP LOCKED: a trigger that another statement has locked resumes its task or is freed by that.
with given as materialized (
    select d.run_key, d.task_index, d.map_index,
           case when d.claimed_at < now() - make_interval(secs => %(worked_s)s) then 1 else d.failures + 1 end as failures
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(epochs)s::bigint[], %(claims)s::int[])
         as g (run_key, task_index, map_index, epoch, claim_number)
    join deferral d using (run_key, task_index, map_index, epoch, claim_number)
    where d.triggerer_id is not null and d.purpose is null
    for no key update of d skip locked
)
update deferral d
set triggerer_id = null, claim_key = null, failures = given.failures,
    due_at = now() + make_interval(secs => least(%(longest_s)s::float8, %(first_s)s::float8 * 2 ^ (given.failures - 1)))
from given
where d.run_key = given.run_key and d.task_index = given.task_index and d.map_index = given.map_index
returning d.epoch, d.failures
