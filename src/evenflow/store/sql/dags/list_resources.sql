-- The pools and executors that tasks may name.
select kind::text, name from concurrency_limit where run_key = 0 and kind in ('pool', 'executor')
