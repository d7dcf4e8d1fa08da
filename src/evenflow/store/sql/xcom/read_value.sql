-- One value for people, by names. One that is secret stays where it is.
select k.task_id, x.map_index, x.key, coalesce(x.size, octet_length(x.value::text)) as size, x.length, x.secret as is_secret,
       x.object is not null as is_stored, x.created_at, case when not x.secret then x.value end as value
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join xcom x on x.run_key = r.run_key and x.task_index = k.task_index and x.map_index = %(map_index)s and x.key = %(key)s
join task_instance t on t.run_key = x.run_key and t.task_index = x.task_index and t.map_index = x.map_index and t.epoch = x.epoch
where r.dag_id = %(dag_id)s and r.run_id = %(run_id)s
