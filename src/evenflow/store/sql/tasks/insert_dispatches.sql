-- Tries for workers to claim. holds arrive as one array literal each.
insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid)
select epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds::bigint[], pool_slots, nullif(avoid, 0)
from unnest(%(epochs)s::bigint[], %(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(tries)s::smallint[], %(classes)s::smallint[],
            %(priorities)s::int[], %(queues)s::text[], %(holds)s::text[], %(slots)s::int[], %(avoid)s::bigint[])
     as c (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid)
