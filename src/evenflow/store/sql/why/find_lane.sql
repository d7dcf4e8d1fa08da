-- The lane in which a ready task instance waits, with its limit class, and how many of the lane start before it: counted up to a
-- limit.
select {{stored_lane}},
       case when l.task_index is not null then %(map_index)s::int - l.next_map_index else (
           select count(*)::int
           from (
               select from ready_task b
               where b.lane_id = l.lane_id and (b.task_index, b.map_index) < (%(task_index)s::int, %(map_index)s::int)
               limit %(counted)s
           ) as before
       ) end as ahead
from lane l
left join ready_task q on q.lane_id = l.lane_id and q.task_index = %(task_index)s::int and q.map_index = %(map_index)s::int
where l.run_key = %(run_key)s
  and (q.lane_id is not null
       or l.task_index = %(task_index)s::int and %(map_index)s::int between l.next_map_index and l.end_map_index - 1)
limit 1
