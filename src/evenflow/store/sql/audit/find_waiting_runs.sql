-- Queued runs that may begin while no wake names their DAG, so that no scheduler looks at them. A run that waits to be cancelled
-- has its cancel in the inbox.
select concat(r.dag_id, '/', r.run_id) as object, 'queued, and no wake of its DAG' as found,
    'a wake, or a reason to wait' as expected
from dag_run r
join dag d on d.dag_id = r.dag_id and {{takes_runs}}
left join concurrency_limit l on l.run_key = 0 and l.kind = 'dag_runs' and l.name = r.dag_id
where r.state = 'queued' and r.run_after <= now() and r.cancelled_by is null and r.quarantined_at is null
  and (l.limit_id is null or l.used < l.capacity)
  and not exists (select from run_wake k where k.dag_id = r.dag_id)
limit %(most)s
