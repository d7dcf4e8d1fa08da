-- History: one row per move.
insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
select run_key, task_index, map_index, epoch, try_number, event, state, detail::jsonb
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(epochs)s::bigint[], %(tries)s::smallint[],
    %(events)s::text[],
            %(states)s::task_state[], %(details)s::text[])
     as c (run_key, task_index, map_index, epoch, try_number, event, state, detail)
