-- The limits of these runs.
select limit_id, kind::text, run_key, name from concurrency_limit where run_key = any(%(run_keys)s::bigint[]) and run_key <> 0
