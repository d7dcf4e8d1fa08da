-- Whether there is such a DAG in a scope.
select from dags_in_scope(%(scope)s::jsonb) as dag_id where dag_id = %(dag_id)s
