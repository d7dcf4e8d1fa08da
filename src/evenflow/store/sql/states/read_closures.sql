-- Where nothing starts for the first time: closed pools and, of the whole system, all executors, by their limits; queues by name.
select l.limit_id, null as queue
from service_state s
join concurrency_limit l on l.run_key = 0 and l.kind = 'pool' and l.name = s.name
where s.kind = 'pool'
union all
select l.limit_id, null
from service_state s
join concurrency_limit l on l.run_key = 0 and l.kind = 'executor'
where s.kind = 'system' and s.state <> 'draining'
union all
select null, name from service_state where kind = 'queue'
