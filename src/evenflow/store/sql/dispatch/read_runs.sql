-- What never changes of these runs, for those who run their tries.
select run_key, version_key, dag_id, run_id, run_type, params, run_after, logical_date, data_interval_start, data_interval_end,
       traceparent
from dag_run
where run_key = any(%(run_keys)s::bigint[])
