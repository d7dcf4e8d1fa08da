-- Which of these partitions of an asset there are.
select partition, at, actor, case
    when (%(scope)s::jsonb is null or dag_id in (select dags_in_scope(%(scope)s::jsonb))) then dag_id end as dag_id,
       case when (%(scope)s::jsonb is null or dag_id in (select dags_in_scope(%(scope)s::jsonb))) then run_id end as run_id,
           event_id
from asset_partition
where asset = %(asset)s and partition = any(%(partitions)s)
