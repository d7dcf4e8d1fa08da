-- One value, unless a try that has been superseded since pushed it: a null when there is none, no row when the try that asks is
-- over.
select x.value::text, x.object, coalesce(x.secret, false)
from dispatch d
left join (xcom x join task_instance t using (run_key, task_index, map_index, epoch))
    on x.run_key = %(run_key)s and x.task_index = %(task_index)s and x.map_index = %(map_index)s and x.key = %(key)s
where d.epoch = %(epoch)s
