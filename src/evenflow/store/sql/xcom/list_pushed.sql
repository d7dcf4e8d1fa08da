-- Which instances of a mapped task pushed a value, in map order. As result_lengths counts, so that every instance of a mapping
-- finds its element. From the primary key alone. And whether that is all, because none of them is still to end.
select coalesce(array_agg(map_index order by map_index), '{}') as pushed,
       not exists (
           select from task_instance
           where run_key = %(run_key)s and task_index = %(task_index)s
             and state not in {{finished}})
       and not exists (
           select from mapped_task m
           where m.run_key = %(run_key)s and m.task_index = %(task_index)s
             and m.virtual_state not in {{finished_virtually}}
             and m.length > (select count(*) from task_instance t where t.run_key = m.run_key
                 and t.task_index = m.task_index)) as complete
from xcom
where run_key = %(run_key)s and task_index = %(task_index)s and map_index >= 0 and key = %(key)s
