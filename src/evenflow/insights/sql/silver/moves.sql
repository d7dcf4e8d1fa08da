-- A row an event of a task instance, in order, with the state before it and the time of the next one. All times are microseconds since
-- 1970: integers are the same in every engine. What one transaction wrote happened at once, at tx_us.
with run as (
    select run_key, min(dag_id) as dag_id, min(version_key) as version_key, min(unix_micros(run_after)) as run_after_us
    from runs
    group by run_key
), event as (
    select e.run_key, e.task_index, e.map_index, unix_micros(e.at) as at_us, e.xact, e.epoch, e.try_number, e.event, e.state,
           max(unix_micros(e.at)) over (partition by e.xact) as tx_us,
           get_json_object(e.detail, '$.keeps') as keeps, get_json_object(e.detail, '$.purpose') as purpose,
           cast(get_json_object(e.detail, '$.ran_s') as double) as ran_s,
           case when e.event in ('grant', 'resume', 'requeue') then 0 when e.event = 'start' then 1 when e.event = 'ready' then 3 else 2 end as place
    from task_events e
)
select e.run_key, e.task_index, e.map_index, e.at_us, e.tx_us, e.xact, e.epoch, e.try_number, e.event, e.state,
       r.dag_id, r.version_key,
       coalesce(lag(e.state) over w, 'none') as before,
       lag(e.epoch) over w as epoch_before,
       lag(e.event) over w as event_before,
       lag(e.keeps) over w as kept_before,
       row_number() over w as position,
       lead(e.at_us) over w as next_us,
       lead(e.event) over w as next_event,
       lag(e.at_us) over w as before_us,
       cast(floor((lead(e.ran_s) over w) * 1000000) as bigint) as next_ran_us,
       e.keeps, e.purpose
from event e
left join run r on r.run_key = e.run_key
window w as (partition by e.run_key, e.task_index, e.map_index order by e.at_us, e.epoch, e.place, e.event)
