-- Limits of runs that have finished.
delete from concurrency_limit where run_key = any(%(run_keys)s::bigint[]) and run_key <> 0
