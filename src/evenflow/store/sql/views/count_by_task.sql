-- How many instances of each task of a run are in each state, those of mapped tasks that have no row yet included. A task that no
-- scheduler has touched is left out.
select k.task_id, jsonb_object_agg(c.state, c.n) as states
from (
    select task_index, state, sum(n)::int as n
    from (
        select task_index, state::text, count(*) as n from task_instance where run_key = %(run_key)s group by task_index, state
        union all
        select m.task_index, m.virtual_state::text, m.length - count(t.map_index)
        from mapped_task m
        left join task_instance t on t.run_key = m.run_key and t.task_index = m.task_index and t.map_index >= 0
        where m.run_key = %(run_key)s
        group by m.task_index, m.virtual_state, m.length
    ) as counted
    group by task_index, state
    having sum(n) > 0
) as c
join dag_run r on r.run_key = %(run_key)s
join task k on k.version_key = r.version_key and k.task_index = c.task_index
group by k.task_id
