-- The oldest runs that ended before an instant, so many or as many as have so many task instances together, but always one. Of a run that
-- is deleted in parts those of its first part count. Keys ascend with time, so only what is older than that is looked at: live runs
-- and those that ended later are few among it. SKIP LOCKED: another scheduler deletes those.
with old as materialized (
    select run_key
    from dag_run
    where run_key < %(before_key)s and state in ('success', 'failed') and ended_at < %(before)s
    order by run_key
    limit %(limit)s
    for update skip locked
), sized as materialized (
    select run_key, (select count(*) from (select from task_instance t where t.run_key = old.run_key limit %(whole)s::int + 1) as first_ones) as size
    from old
)
select run_key
from (select run_key, size, sum(size) over (order by run_key) as together from sized) as s
where together <= %(instances)s or together = size
order by run_key
