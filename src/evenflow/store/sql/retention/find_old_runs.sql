-- The oldest runs after a key that ended before an instant, up to a number of runs and of task instances together, but always one.
-- Of a run that is deleted in parts the instances of its first part count. Keys ascend with time, so only older runs are looked at,
-- up to a number; live runs among them, and those that ended later, are left behind. Answers the runs, the key after which the next
-- look begins, and whether that was all. SKIP LOCKED: another scheduler deletes those. Runs with history from a transaction at or
-- after ``past`` stay; for tasks that is looked for once for all, because the index of their history is read whole each time.
with looked as materialized (
    select run_key, state in ('success', 'failed') and ended_at < %(before)s as is_old
    from dag_run
    where run_key > %(after)s and run_key < %(before_key)s
    order by run_key
    limit %(most)s
), awaited as materialized (
    select distinct run_key from task_event
    where run_key between (select min(run_key) from looked where is_old) and (select max(run_key) from looked where is_old)
      and xact >= %(past)s::bigint
), old as materialized (
    select run_key
    from dag_run
    where run_key = any(array(select run_key from looked where is_old)) and state in ('success', 'failed') and ended_at < %(before)s
      and not exists (select from run_event e where e.run_key = dag_run.run_key and e.xact >= %(past)s::bigint)
      and not exists (select from awaited a where a.run_key = dag_run.run_key)
    order by run_key
    limit %(limit)s
    for update skip locked
), sized as materialized (
    select run_key, (select count(*)
        from (select from task_instance t where t.run_key = old.run_key limit %(whole)s::int + 1) as first_ones) as size
    from old
), chosen as materialized (
    select run_key
    from (select run_key, size, sum(size) over (order by run_key) as together from sized) as s
    where together <= %(instances)s or together = size
)
select array(select run_key from chosen order by run_key) as run_keys,
       coalesce((select max(run_key) from chosen), (select max(run_key) from looked), %(after)s) as after,
       (select count(*) from looked) < %(most)s and not exists (select from chosen) as is_end
