-- Task instances that wait for people, the longest waiting first; those that were answered a moment ago are left out.
select jsonb_build_array(d.deferred_at, d.epoch) as place, r.dag_id, r.run_id, k.task_id, r.run_key, d.task_index, d.map_index,
    d.epoch, d.sealed, d.deferred_at as asked_at, d.timeout_at as until
from deferral d
join dag_run r using (run_key)
join task k using (version_key, task_index)
where d.due_at = 'infinity' and d.purpose is null
  and (%(dag_id)s::text is null or r.dag_id = %(dag_id)s)
  and (%(run_id)s::text is null or r.run_id = %(run_id)s)
  and (%(task_id)s::text is null or k.task_id = %(task_id)s)
  and (%(map_index)s::int is null or d.map_index = %(map_index)s)
  and (%(scope)s::jsonb is null or r.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
  and not exists (
      select from approval a
      where a.run_key = d.run_key and a.task_index = d.task_index and a.map_index = d.map_index and a.epoch = d.epoch)
  and (%(after)s::jsonb is null
      or (d.deferred_at, d.epoch) > ((%(after)s::jsonb ->> 0)::timestamptz, (%(after)s::jsonb ->> 1)::bigint))
order by d.deferred_at, d.epoch
limit %(limit)s
