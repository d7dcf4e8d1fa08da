-- What is read of the lane "l": the columns of StoredLane.
l.lane_id, l.class_id, l.run_key, l.run_priority, l.priority, l.order_key, l.locals,
       l.ready, l.task_index, l.next_map_index, l.end_map_index, l.parked_on, extract(epoch from l.since)::float8 as since_s,
           l.tries_before,
       l.exempt
