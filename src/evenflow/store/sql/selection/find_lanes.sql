-- Lanes that stored ready tasks of these (run, limit class, priority) already, parked or open. Not those of resumes, whose ids are negative: there
-- may be as many as there are resumes, and none of them takes in more.
select l.lane_id, l.class_id, l.run_key, l.run_priority, l.priority, l.order_key, l.locals,
       l.ready, l.task_index, l.next_map_index, l.end_map_index, l.parked_on, extract(epoch from l.since)::float8 as since_s, l.tries_before,
       l.exempt
from unnest(%(run_keys)s::bigint[], %(limit_classes)s::int[], %(priorities)s::int[]) as k (run_key, class_id, priority)
join lane l using (run_key, class_id, priority)
where l.lane_id > 0
