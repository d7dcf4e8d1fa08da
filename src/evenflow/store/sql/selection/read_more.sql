-- The next open or woken lanes of a limit class. What a transaction reads of it does not change before it writes.
select l.lane_id, l.class_id, l.run_key, l.run_priority, l.priority, l.order_key, l.locals,
       l.ready, l.task_index, l.next_map_index, l.end_map_index, l.parked_on, extract(epoch from l.since)::float8 as since_s, l.tries_before,
       l.exempt
from lane l
where parked_on = %(parked_on)s and parked_on in (0, -2) and class_id = %(queue)s
order by order_key
limit %(limit)s offset %(seen)s
