-- Moves of task instances of a run behind one of them, each instance in the order in which they happened. A partition of history
-- has no order of its own: a page costs what the whole run costs.
select e.task_index, e.map_index, e.at, e.xact, e.epoch, e.try_number, e.event, e.state::text, coalesce(e.detail, '{}') as detail,
       k.task_id, k.operator
from dag_run r
join task_event e on e.run_key = r.run_key
join task k on k.version_key = r.version_key and k.task_index = e.task_index
where r.run_key = %(run_key)s and (e.task_index, e.map_index) > (%(task_index)s::int, %(map_index)s::int)
order by e.task_index, e.map_index, {{moves_in_order}}
limit %(limit)s
