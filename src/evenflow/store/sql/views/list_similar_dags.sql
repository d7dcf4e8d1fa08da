-- DAGs whose ids are about as long as a name that does not exist: among them is the one that was meant.
select dag_id
from dag
where is_active and length(dag_id) between length(%(wanted)s::text) - 3 and length(%(wanted)s::text) + 3
  and (%(scope)s::jsonb is null or dag_id in (select dags_in_scope(%(scope)s::jsonb)))
order by dag_id
limit %(limit)s
