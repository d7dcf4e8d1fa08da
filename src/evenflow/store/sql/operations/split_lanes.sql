-- A lane of a mapped task stands for a range of untouched instances. When a person takes instances out of the middle, each part
-- that is left becomes a lane of its own, a copy of the first. Answers the limits that the copies are parked on: a copy may come
-- before the lane that stands there for all that wait for room.
insert into lane (lane_id, class_id, run_key, run_priority, priority, order_key, locals, parked_on, ready, task_index,
    next_map_index,
                  end_map_index, since, base_id, tries_before, exempt)
select c.fresh, l.class_id, l.run_key, l.run_priority, l.priority, substring(l.order_key for 16) || decode(c.key_end, 'hex'),
       l.locals, l.parked_on, c.past - c.first, l.task_index, c.first, c.past, l.since, l.base_id, l.tries_before, l.exempt
from unnest(%(lanes)s::bigint[], %(fresh)s::bigint[], %(key_ends)s::text[], %(first)s::int[], %(past)s::int[]) as c (lane_id, fresh,
    key_end, first, past)
join lane l using (lane_id)
returning parked_on
