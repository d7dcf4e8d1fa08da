-- The limit of a pool, and its slots.
select limit_id, capacity from concurrency_limit where (run_key, kind, name) = (0, 'pool', %(name)s)
