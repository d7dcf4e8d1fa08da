-- Sensors that look again later: a timer for each, and since when each has been looking. The caller holds the runs' locks.
with given as (
    select *
    from unnest(%(delays)s::float8[], %(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(epochs)s::bigint[])
         as c (delay_s, run_key, task_index, map_index, epoch)
), poked as (
    update task_instance t set poking_since = coalesce(t.poking_since, t.started_at, now())
    from given g
    where t.run_key = g.run_key and t.task_index = g.task_index and t.map_index = g.map_index and t.poking_since is null
)
insert into timer (due_at, kind, run_key, task_index, map_index, epoch)
select now() + make_interval(secs => delay_s), 'reschedule', run_key, task_index, map_index, epoch from given
