-- How many task instances of a run are in each state: those with a row, those of mapped tasks that have none yet, and the tasks of
-- a run that no scheduler has touched.
select state::text, sum(n)::int as n
from (
    select state, count(*) as n from task_instance where run_key = %(run_key)s group by state
    union all
    select m.virtual_state, m.length - count(t.map_index)
    from mapped_task m
    left join task_instance t on t.run_key = m.run_key and t.task_index = m.task_index and t.map_index >= 0
    where m.run_key = %(run_key)s
    group by m.task_index, m.virtual_state, m.length
    union all
    select 'none', count(*)
    from dag_run r
    join task k on k.version_key = r.version_key
    where r.run_key = %(run_key)s
      and not exists (select from task_instance t where t.run_key = r.run_key and t.task_index = k.task_index)
      and not exists (select from mapped_task m where m.run_key = r.run_key and m.task_index = k.task_index)
) as counted
group by state
having sum(n) > 0
