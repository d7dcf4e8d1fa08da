-- The limits that DAGs brought with them: of their runs, of their tasks, and those of their runs that run.
select limit_id, kind::text, run_key, name as dag_id, name, capacity
from concurrency_limit
where run_key = 0 and kind = 'dag_runs' and name = any(%(dag_ids)s::text[])
union all
select limit_id, kind::text, run_key, split_part(name, '/', 1), name, capacity
from concurrency_limit
where run_key = 0 and kind = 'dag_task' and split_part(name, '/', 1) = any(%(dag_ids)s::text[])
union all
select l.limit_id, l.kind::text, l.run_key, r.dag_id, l.name, l.capacity
from concurrency_limit l
join dag_run r using (run_key)
where l.run_key > 0 and r.dag_id = any(%(dag_ids)s::text[])
