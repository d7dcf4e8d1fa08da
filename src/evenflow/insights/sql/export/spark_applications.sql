-- The applications of Spark of which some transactions wrote what they took.
select run_key, task_index, map_index, at, xact, epoch, try_number, application_id, cores, wall_us, task_us, gc_us, input_bytes, output_bytes,
       shuffle_bytes, spilled_bytes
from evenflow_reporting_v1.spark_applications
where xact >= %(first)s and xact < %(past)s
order by xact, at, epoch
