-- Which task instances of a run an operation would touch if it were applied now. A map index of null means all instances.
with asked as (
    select * from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
), touched as (
    select t.task_index, t.map_index, t.state
    from asked x
    join task_instance t on t.run_key = %(run_key)s and t.task_index = x.task_index and (x.map_index is null or t.map_index = x.map_index)
    where t.state = any(%(states)s::task_state[])
    union all
    select m.task_index, i.map_index, m.rest
    from asked x
    join mapped_task m on m.run_key = %(run_key)s and m.task_index = x.task_index and m.rest = any(%(states)s::task_state[])
    cross join lateral generate_series(coalesce(x.map_index, 0), coalesce(least(x.map_index, m.length - 1), m.length - 1)) as i (map_index)
    where not exists (
        select from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index and t.map_index = i.map_index)
)
select k.task_id, t.map_index, t.state::text
from touched t
join dag_run r on r.run_key = %(run_key)s
join task k on k.version_key = r.version_key and k.task_index = t.task_index
order by t.task_index, t.map_index
limit %(limit)s
