-- The pools and executors that tasks may name, and the queues of executors.
select 'pool' as kind, name, null as queues from pool
union all
select 'executor', name, queues from executor
