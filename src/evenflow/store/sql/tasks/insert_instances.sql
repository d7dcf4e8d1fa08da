-- Task instances as they are born: with their run, or a mapped one at its start.
insert into task_instance (run_key, task_index, map_index, state, epoch, try_number, tries_before, queued_at, ended_at)
select run_key, task_index, map_index, state, epoch, try_number, tries_before, case when epoch > 0 then now() end,
       case when state in {{finished}} then now() end
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(states)s::task_state[], %(epochs)s::bigint[],
            %(tries)s::smallint[], %(tries_before)s::smallint[])
     as c (run_key, task_index, map_index, state, epoch, try_number, tries_before)
