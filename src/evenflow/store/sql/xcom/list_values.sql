-- What the tasks of a run pushed, without the values; those of superseded tries are left out.
select jsonb_build_array(x.task_index, x.map_index, x.key) as place, k.task_id, x.map_index, x.key,
    coalesce(x.size, octet_length(x.value::text)) as size, x.length, x.secret as is_secret,
       x.object is not null as is_stored, x.created_at
from dag_run r
join xcom x on x.run_key = r.run_key
join task_instance t on t.run_key = x.run_key and t.task_index = x.task_index and t.map_index = x.map_index and t.epoch = x.epoch
join task k on k.version_key = r.version_key and k.task_index = x.task_index
where r.dag_id = %(dag_id)s and r.run_id = %(run_id)s and (%(task_id)s::text is null or k.task_id = %(task_id)s)
  and (%(after)s::jsonb is null
      or (x.task_index, x.map_index, x.key) > ((%(after)s::jsonb ->> 0)::bigint, (%(after)s::jsonb ->> 1)::bigint,
      %(after)s::jsonb ->> 2))
order by x.task_index, x.map_index, x.key
limit %(limit)s
