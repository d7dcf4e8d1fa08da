-- By day, DAG, owner and application of Spark: how long its cores were there and its tasks ran, and the bytes that it moved.
select cast(floor(unix_micros(a.at) / 86400000000) as bigint) as day, r.dag_id, t.owner, t.task_id, r.run_id, a.map_index, a.try_number,
       a.application_id, a.cores, a.cores * a.wall_us as core_us, a.task_us, a.gc_us, a.input_bytes, a.output_bytes, a.shuffle_bytes, a.spilled_bytes
from spark_applications a
join (select distinct run_key, dag_id, run_id, version_key from runs) r on r.run_key = a.run_key
join (select distinct version_key, task_index, task_id, owner from tasks) t on t.version_key = r.version_key and t.task_index = a.task_index
