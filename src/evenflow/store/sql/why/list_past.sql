-- What a task that depends on the past waits for: tasks of the run before, with the states of their instances.
select r.run_id, k.task_id, coalesce(s.states, '{}') as states
from past_watch w
join dag_run r on r.run_key = w.run_key
join task k on k.version_key = r.version_key and k.task_index = w.task_index
cross join lateral (
    select jsonb_object_agg(state, n) as states
    from (
        select state, count(*)::int as n from task_instance t where t.run_key = w.run_key and t.task_index = w.task_index
        group by state
    ) as found
) as s
where w.waiter_run = %(run_key)s and w.waiter_task = %(task_index)s
order by k.task_index
limit %(named)s
