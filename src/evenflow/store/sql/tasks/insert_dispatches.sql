-- Tries for workers to claim, and the moves that made them. holds arrive as one array literal each. What
-- an operator wants after the clean-up of a deferred one is said there.
with given as materialized (
    select epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds::bigint[], pool_slots, nullif(avoid, 0) as avoid,
           event, detail::jsonb
    from unnest(%(epochs)s::bigint[], %(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(tries)s::smallint[],
                %(classes)s::smallint[], %(priorities)s::bigint[], %(queues)s::text[], %(holds)s::text[], %(slots)s::int[],
                %(avoid)s::bigint[], %(events)s::text[], %(details)s::text[])
         as c (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid, event, detail)
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
    select run_key, task_index, map_index, epoch, try_number, event, 'queued', detail from given
)
insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid, intent)
select epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid,
       case when class = 0 then (
           select f.intent from deferral f where f.run_key = given.run_key and f.task_index = given.task_index and f.map_index = given.map_index
       ) end
from given
