-- max_active_runs of a DAG. A limit that is new counts the runs that run already.
insert into concurrency_limit (kind, name, capacity, used)
select 'dag_runs', %(dag_id)s, %(capacity)s, count(*) from dag_run where dag_id = %(dag_id)s and state = 'running'
on conflict (run_key, kind, name) do update set capacity = excluded.capacity
where concurrency_limit.capacity <> excluded.capacity
