-- Task instances that are not scheduled any more leave their lanes. Under the executor's lock.
with gone as (
    delete from ready_task r
    using lane l
    where l.run_key = %(run_key)s and r.lane_id = l.lane_id
      and not exists (
          select from task_instance t
          where t.run_key = l.run_key and t.task_index = r.task_index and t.map_index = r.map_index and t.state = 'scheduled')
    returning r.lane_id
)
update lane l set ready = l.ready - g.n
from (select lane_id, count(*)::int as n from gone group by lane_id) as g
where l.lane_id = g.lane_id
