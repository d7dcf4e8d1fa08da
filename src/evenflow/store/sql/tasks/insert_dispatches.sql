-- Tries for workers to claim, and the moves that made them, with the task instances that move: compare-and-set on (state, epoch), as in tasks/move.
-- One that is born with its dispatch (was_state is null) is written elsewhere. A dispatch begins with clean times and no reason, but a try that has
-- been deferred began when it began. holds arrive as one array literal each. What somebody wants after the clean-up of a deferred one is said there.
with given as materialized (
    select epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds::bigint[], pool_slots, nullif(avoid, 0) as avoid,
           event, detail::jsonb, was_state, was_epoch, losses
    from unnest(%(epochs)s::bigint[], %(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(tries)s::smallint[],
                %(classes)s::smallint[], %(priorities)s::bigint[], %(queues)s::text[], %(holds)s::text[], %(slots)s::int[],
                %(avoid)s::bigint[], %(events)s::text[], %(details)s::text[], %(was_states)s::task_state[], %(was_epochs)s::bigint[],
                %(losses)s::smallint[])
         as c (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid, event, detail, was_state,
               was_epoch, losses)
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
    select run_key, task_index, map_index, epoch, try_number, event, 'queued', detail from given
), queued as (
    update task_instance t
    set state = 'queued', epoch = c.epoch, try_number = c.try_number, losses = t.losses + c.losses, queued_at = now(), ended_at = null, reason = null,
        started_at = case when t.started_at is not null then (
            select f.began_at from deferral f where f.run_key = c.run_key and f.task_index = c.task_index and f.map_index = c.map_index
        ) end
    from given c
    where t.run_key = c.run_key and t.task_index = c.task_index and t.map_index = c.map_index and t.state = c.was_state and t.epoch = c.was_epoch
    returning 1
), written as (
    insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid, intent)
    select epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid,
           case when class = 0 then (
               select f.intent from deferral f where f.run_key = given.run_key and f.task_index = given.task_index and f.map_index = given.map_index
           ) end
    from given
)
select expect_rows(count(*), %(expected)s, 'Queueing task instances') from queued
