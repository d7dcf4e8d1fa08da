-- Room on these limits. Only the holder of the executor's lock changes use, so it reads without locking.
select limit_id, capacity - used as free from concurrency_limit where limit_id = any(%(limits)s::bigint[])
