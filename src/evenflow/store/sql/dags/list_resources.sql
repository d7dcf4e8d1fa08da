-- The pools and executors that tasks may name.
select 'pool' as kind, name from pool
union all
select 'executor', name from concurrency_limit where run_key = 0 and kind = 'executor'
