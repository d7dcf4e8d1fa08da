-- Which of these partitions of an asset there are.
select partition, at, actor, dag_id, run_id, event_id
from asset_partition
where asset = %(asset)s and partition = any(%(partitions)s)
