-- Task instances that have just been deferred, after their moves, and the timers that end their waiting. One that has deferred
-- before in this try keeps what the try began with. Such a row is not locked by anybody else: triggerers take only what waits. The
-- caller holds the locks of the runs. Lists of limits arrive as one array literal each. What is in the queue of people is due for
-- no triggerer.
with given as materialized (
    select g.run_key, g.task_index, g.map_index, g.epoch, g.queue, g.trigger, decode(g.sealed, 'base64') as sealed,
           g.holds::bigint[] as holds, g.pool_slots, g.retake::bigint[] as retake, g.retake_slots, g.ran_s,
           now() + make_interval(secs => g.timeout_s) as timeout_at, g.execution_timeout_s,
           coalesce(f.began_at, t.started_at, now()) as began_at, coalesce(f.ran_s, 0) as ran_before_s,
           coalesce(f.ready_at, t.queued_at, now()) as ready_at
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(epochs)s::bigint[], %(queues)s::text[],
        %(triggers)s::text[],
                %(sealed)s::text[], %(holds)s::text[], %(slots)s::int[], %(retake)s::text[], %(retake_slots)s::int[],
                    %(ran)s::float8[],
                %(timeouts)s::float8[], %(execution_timeouts)s::float8[])
         as g (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake, retake_slots, ran_s,
             timeout_s,
               execution_timeout_s)
    join task_instance t using (run_key, task_index, map_index)
    left join deferral f using (run_key, task_index, map_index)
), timed as (
    insert into timer (due_at, kind, run_key, task_index, map_index, epoch)
    select timeout_at, 'trigger_timeout', run_key, task_index, map_index, epoch from given where timeout_at is not null
    union all
    select began_at + make_interval(secs => execution_timeout_s), 'execution_timeout', run_key, task_index, map_index, epoch
    from given
    where execution_timeout_s is not null
)
insert into deferral as f (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake, retake_slots,
    timeout_at,
                           began_at, ran_s, ready_at, due_at)
select run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake, retake_slots, timeout_at, began_at,
       ran_before_s + ran_s, ready_at, case when queue = %(people)s then 'infinity' else now() end
from given
on conflict (run_key, task_index, map_index) do update
set epoch = excluded.epoch, queue = excluded.queue, trigger = excluded.trigger, sealed = excluded.sealed, holds = excluded.holds,
    pool_slots = excluded.pool_slots, retake = excluded.retake, retake_slots = excluded.retake_slots,
        timeout_at = excluded.timeout_at,
    ran_s = excluded.ran_s, deferred_at = now(), due_at = excluded.due_at, failures = 0, purpose = null, event = null,
        event_at = null, reason = null,
    intent = null
