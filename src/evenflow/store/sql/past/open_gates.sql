-- Something that tasks of locked runs waited for has ended well. Answers the instances that nothing else holds back, of the gates
-- that are open now; a gate that is open has no row.
with counted as (
    update past_gate g set missing = g.missing - c.n
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(counts)s::int[]) as c (run_key, task_index, n)
    where g.run_key = c.run_key and g.task_index = c.task_index
    returning g.run_key, g.task_index, g.missing
)
select h.run_key, h.task_index, h.map_index, t.state::text, t.epoch, t.try_number
from counted c
join past_hold h using (run_key, task_index)
join task_instance t using (run_key, task_index, map_index)
where c.missing <= 0
