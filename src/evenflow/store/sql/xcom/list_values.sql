-- What the tasks of a run pushed, without the values; those of superseded tries are left out. Each is looked up by itself, in the
-- order of the key: a page reads what it shows.
with run as materialized (
    select run_key, version_key from dag_run where dag_id = %(dag_id)s and run_id = %(run_id)s
)
select jsonb_build_array(x.task_index, x.map_index, x.key) as place, k.task_id, x.map_index, x.key,
    coalesce(x.size, octet_length(x.value::text)) as size, x.length, x.secret as is_secret,
       x.object is not null as is_stored, x.created_at
from xcom x
cross join lateral (
    select from task_instance t
    where t.run_key = x.run_key and t.task_index = x.task_index and t.map_index = x.map_index and t.epoch = x.epoch
    offset 0
) as current
cross join lateral (
    select task_id from task where version_key = (select version_key from run) and task_index = x.task_index offset 0
) as k
where x.run_key = (select run_key from run) and (%(task_id)s::text is null or k.task_id = %(task_id)s)
  and (%(after)s::jsonb is null
      or (x.task_index, x.map_index, x.key) > ((%(after)s::jsonb ->> 0)::bigint, (%(after)s::jsonb ->> 1)::bigint,
      %(after)s::jsonb ->> 2))
order by x.task_index, x.map_index, x.key
limit %(limit)s
