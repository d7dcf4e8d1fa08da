-- Task instances that are queued or running without a dispatch of their epoch, and dispatches of no such task instance.
with live as (
    select t.run_key, t.task_index, t.map_index, t.state, t.epoch
    from dag_run r
    join task_instance t using (run_key)
    where r.state = 'running' and t.state in ('queued', 'running')
)
select concat(r.dag_id, '/', r.run_id, ' ', k.task_id, '[' || nullif(map_index, -1) || ']') as object,
       concat_ws(', ', coalesce('dispatch of epoch ' || d.epoch, 'no dispatch'), t.state || ' in epoch ' || t.epoch) as found,
       case when t.epoch is null then 'no dispatch' else 'a dispatch of epoch ' || t.epoch end as expected
from live t
full join dispatch d using (run_key, task_index, map_index)
left join dag_run r using (run_key)
left join task k using (version_key, task_index)
where d.epoch is distinct from t.epoch
limit %(most)s
