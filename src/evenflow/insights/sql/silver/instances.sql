-- A row a task instance: when it could begin, when it was given to workers first, and when it ended last. It could begin when it became
-- ready; where history has no such event, because it started at once, when the last of its upstreams had ended or its run began.
with begun as (
    select e.run_key, min(unix_micros(e.at)) as begun_us from run_events e where e.event = 'start' group by e.run_key
), upstream_ended as (
    select i.run_key, i.task_index, i.map_index, max(u.ended_us) as upstream_us
    from touched i
    join edges e on e.version_key = i.version_key and e.task_index = i.task_index
    join (select run_key, task_index, max(ended_us) as ended_us from touched group by run_key, task_index) u
      on u.run_key = i.run_key and u.task_index = e.upstream
    where u.ended_us <= i.granted_us
    group by i.run_key, i.task_index, i.map_index
)
select i.run_key, i.task_index, i.map_index, i.dag_id, i.version_key, b.begun_us, i.granted_us, i.ended_us,
       case when i.ready_us <= i.granted_us then i.ready_us
            else least(coalesce(greatest(coalesce(u.upstream_us, b.begun_us), coalesce(b.begun_us, u.upstream_us)), i.granted_us), i.granted_us)
       end as ready_us
from touched i
left join begun b on b.run_key = i.run_key
left join upstream_ended u on u.run_key = i.run_key and u.task_index = i.task_index and u.map_index = i.map_index
