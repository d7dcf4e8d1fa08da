-- Lanes for ready tasks that did not start. locals arrive as one array literal each.
insert into lane (lane_id, class_id, run_key, run_priority, priority, order_key, locals, parked_on, ready, task_index,
    next_map_index,
                  end_map_index, since, base_id, tries_before, exempt)
select lane_id, class_id, run_key, run_priority, priority, decode(order_key, 'hex'), locals::bigint[], parked_on, ready,
       nullif(task_index, -1), next_map_index, end_map_index, to_timestamp(since_s), base_id, tries_before, exempt
from unnest(%(lanes)s::bigint[], %(limit_classes)s::int[], %(run_keys)s::bigint[], %(run_priorities)s::int[], %(priorities)s::int[],
            %(order_keys)s::text[], %(locals)s::text[], %(parked)s::bigint[], %(ready)s::int[], %(tasks)s::int[], %(next)s::int[],
            %(ends)s::int[], %(since)s::float8[], %(bases)s::int[], %(tries_before)s::smallint[], %(exempt)s::bool[])
     as c (lane_id, class_id, run_key, run_priority, priority, order_key, locals, parked_on, ready, task_index, next_map_index,
           end_map_index, since_s, base_id, tries_before, exempt)
