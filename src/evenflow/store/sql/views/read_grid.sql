-- The newest runs of a DAG, each with the indexes of its tasks by state. Instances of a mapped task count once for each state that
-- one of them is in, including those without a row. Reads the runs by their primary keys.
with shown as materialized (
    select run_key, run_id, state, run_type, version_key, logical_date, created_at, started_at, ended_at
    from dag_run
    where dag_id = %(dag_id)s
    order by run_key desc
    limit %(limit)s offset %(offset)s
), cell as (
    select s.run_key, t.state::text, t.task_index
    from shown s
    join task_instance t on t.run_key = s.run_key
    group by s.run_key, t.state, t.task_index
    union
    select s.run_key, m.virtual_state::text, m.task_index
    from shown s
    join mapped_task m on m.run_key = s.run_key
    where m.length > (select count(*) from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index
        and t.map_index >= 0)
), states as (
    select run_key, jsonb_object_agg(state, indexes) as states
    from (select run_key, state, jsonb_agg(task_index order by task_index) as indexes from cell group by run_key, state) as by_state
    group by run_key
)
select s.run_id, s.state::text, s.run_type, s.version_key, v.version_number, s.logical_date, s.created_at, s.started_at,
       extract(epoch from coalesce(s.ended_at, now()) - s.started_at)::float8 as elapsed_s, coalesce(states.states, '{}') as states
from shown s
join dag_version v on v.version_key = s.version_key
left join states on states.run_key = s.run_key
order by s.run_key desc
