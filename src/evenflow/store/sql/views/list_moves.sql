-- The newest moves of a task instance, the oldest of them first. Of a worker it tells the name; one that is not known any more is
-- left out.
select m.task_index, m.map_index, m.at, m.xact, m.epoch, m.try_number, m.event, m.state, m.task_id, m.operator,
       m.detail - 'worker' || case when s.name is null then '{}' else jsonb_build_object('worker', s.name) end as detail
from (
    select e.task_index, e.map_index, e.at, e.xact, e.epoch, e.try_number, e.event, e.state::text, k.task_id, k.operator,
           coalesce(e.detail, '{}') as detail, row_number() over (order by {{moves_in_order}}) as place
    from dag_run r
    join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
    join task_event e on e.run_key = r.run_key and e.task_index = k.task_index and e.map_index = %(map_index)s
    where r.run_key = %(run_key)s
    order by place desc
    limit %(limit)s
) as m
left join service s on s.service_id = (m.detail ->> 'worker')::bigint
order by m.place
