-- What happened to a task of a run, or to one instance of it, the oldest first. Of a worker it tells the name, as long as that is
-- known.
select jsonb_build_array(e.at, e.map_index, e.epoch, e.event) as place, e.at, e.map_index, e.try_number, e.event, e.state::text,
    e.detail ->> 'actor' as actor,
    e.detail || case when s.name is null then '{}' else jsonb_build_object('worker', s.name) end as detail
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join task_event e on e.run_key = r.run_key and e.task_index = k.task_index
left join service s on s.service_id = (e.detail ->> 'worker')::bigint
where r.run_key = %(run_key)s and (%(map_index)s::int is null or e.map_index = %(map_index)s)
  and (%(after)s::jsonb is null
      or (e.at, e.map_index, e.epoch, e.event) > ((%(after)s::jsonb ->> 0)::timestamptz, (%(after)s::jsonb ->> 1)::bigint,
      (%(after)s::jsonb ->> 2)::bigint, %(after)s::jsonb ->> 3))
order by e.at, e.map_index, e.epoch, e.event
limit %(limit)s
