-- Lanes that stored ready tasks of these (run, limit class, priority) already, parked or open. Not those of resumes, whose ids are
-- negative: there may be as many as there are resumes, and none of them takes in more.
select {{stored_lane}}
from unnest(%(run_keys)s::bigint[], %(limit_classes)s::int[], %(priorities)s::int[]) as k (run_key, class_id, priority)
join lane l using (run_key, class_id, priority)
where l.lane_id > 0
