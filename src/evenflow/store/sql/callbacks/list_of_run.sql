-- The callbacks of a run in the order in which they were called, and how they stand.
select k.run_id, coalesce('rule ' || (c.notifier ->> 'rule'), c.event) as event, t.task_id, nullif(c.map_index, -1) as map_index,
    nullif(c.try_number, 0) as try_number, k.state::text, k.created_at,
       coalesce(k.reason, i.reason) as reason
from callback c
join dag_run k on k.run_key = c.run_key
left join task t on t.version_key = c.version_key and t.task_index = c.task_index
left join task_instance i on i.run_key = c.run_key and i.task_index = 0 and i.map_index = -1
where c.of_run = %(run_key)s
order by c.run_key
limit %(limit)s
