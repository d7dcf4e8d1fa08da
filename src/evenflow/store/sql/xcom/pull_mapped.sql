-- All values of a mapped task in map order, as one JSON list; null when it would be longer than the limit.
select case when coalesce(sum(octet_length(x.value::text)), 0) <= %(limit)s
            then coalesce(jsonb_agg(x.value order by x.map_index), '[]')::text
       end
from xcom x
join task_instance t using (run_key, task_index, map_index, epoch)
where x.run_key = %(run_key)s and x.task_index = %(task_index)s and x.map_index >= 0 and x.key = %(key)s
