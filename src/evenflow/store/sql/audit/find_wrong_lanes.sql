-- Lanes that do not stand for the tasks that they have, that are empty, or whose run is not running.
with stored as (
    select lane_id, count(*) as n from ready_task group by lane_id
), counted as (
    select l.lane_id, l.run_key, l.ready, coalesce(s.n, 0) + l.end_map_index - l.next_map_index as expected
    from lane l
    left join stored s using (lane_id)
)
select concat('lane ', c.lane_id, ' of ', r.dag_id, '/', r.run_id) as object,
       case when r.state is distinct from 'running' then 'its run is ' || coalesce(r.state::text, 'gone')
           else c.ready || ' ready' end as found,
       case
           when r.state is distinct from 'running' then 'a running run'
           when c.expected = 0 then 'no such lane: it is empty'
           else c.expected || ' ready'
       end as expected
from counted c
left join dag_run r using (run_key)
where c.ready <> c.expected or c.ready <= 0 or r.state is distinct from 'running'
limit %(most)s
