-- Lanes for ready tasks that did not start. locals arrive as one array literal each. Seconds and the rest of run_after apart: a float does not
-- hold the microseconds of a date that is thousands of years away.
insert into lane (lane_id, class_id, run_key, run_priority, priority, run_after, locals, parked_on, ready, task_index, next_map_index,
                  end_map_index, since, base_id, tries_before, exempt)
select lane_id, class_id, run_key, run_priority, priority, to_timestamp(run_after_us / 1000000) + run_after_us %% 1000000 * interval '1 us', locals::bigint[], parked_on, ready,
       nullif(task_index, -1), next_map_index, end_map_index, to_timestamp(since_s), base_id, tries_before, exempt
from unnest(%(lanes)s::bigint[], %(limit_classes)s::int[], %(run_keys)s::bigint[], %(run_priorities)s::int[], %(priorities)s::int[],
            %(run_afters)s::bigint[], %(locals)s::text[], %(parked)s::bigint[], %(ready)s::int[], %(tasks)s::int[], %(next)s::int[],
            %(ends)s::int[], %(since)s::float8[], %(bases)s::int[], %(tries_before)s::smallint[], %(exempt)s::bool[])
     as c (lane_id, class_id, run_key, run_priority, priority, run_after_us, locals, parked_on, ready, task_index, next_map_index,
           end_map_index, since_s, base_id, tries_before, exempt)
