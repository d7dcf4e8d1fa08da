-- Adds what finished to the counters of single map indexes, made when they are first touched, and answers their state. Only the
-- holder of the run's lock comes here, so no other transaction makes a counter between the two statements; the update sees none
-- that the insert made.
with given as materialized (
    select *
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(wholes)s::int[], %(total)s::int[], %(success)s::int[],
                %(failed)s::int[], %(skipped)s::int[]) as d (run_key, task_index, map_index, whole, total, success, failed, skipped)
), changed as (
    update upstream_counter c
    set total = c.total + d.total, success = c.success + d.success, failed = c.failed + d.failed, skipped = c.skipped + d.skipped
    from given d
    where c.run_key = d.run_key and c.task_index = d.task_index and c.map_index = d.map_index
    returning c.run_key, c.task_index, c.map_index, c.total, c.success, c.failed, c.skipped
), made as (
    insert into upstream_counter (run_key, task_index, map_index, total, success, failed, skipped)
    select run_key, task_index, map_index, whole + total, success, failed, skipped
    from given d
    where not exists (
        select from upstream_counter c where c.run_key = d.run_key and c.task_index = d.task_index and c.map_index = d.map_index)
    returning run_key, task_index, map_index, total, success, failed, skipped
)
select * from changed union all select * from made
