-- How many runs run, of a DAG or of all.
select count(*)::int as runs from dag_run where state = 'running' and (%(dag_id)s::text is null or dag_id = %(dag_id)s)
  and (%(scope)s::jsonb is null or dag_id in (select dags_in_scope(%(scope)s::jsonb)))
