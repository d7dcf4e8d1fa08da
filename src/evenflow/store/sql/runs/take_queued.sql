-- Queued runs that may start, of the DAGs after a given one: of each that is not paused and does not drain, as nothing but callbacks may
-- while the system is not active, as many as its max_active_runs leaves, up to a
-- share, by priority and then the earliest first. The distinct DAGs are found by skipping through the index, so a DAG with thousands of
-- waiting runs hides no other. SKIP LOCKED: another scheduler has it.
with recursive waiting as (
    (select dag_id from dag_run where state = 'queued' and dag_id > %(after)s order by dag_id limit 1)
    union all
    select (select r.dag_id from dag_run r where r.state = 'queued' and r.dag_id > waiting.dag_id order by r.dag_id limit 1)
    from waiting
    where waiting.dag_id is not null
)
select r.run_key, r.dag_id, r.version_key, r.priority, (extract(epoch from r.run_after) * 1e6)::bigint as run_after_us, l.limit_id,
       extract(epoch from greatest(r.run_after, r.created_at, l.released_at))::float8 as due_at_s, r.clears
from waiting w
join dag d on d.dag_id = w.dag_id and not d.is_paused and not exists (
    select from service_state s
    where s.kind = 'dag' and s.name = d.dag_id and s.state = 'draining' or s.kind = 'system' and d.dag_id <> 'evenflow_callbacks')
left join concurrency_limit l on l.run_key = 0 and l.kind = 'dag_runs' and l.name = w.dag_id
cross join lateral (
    select q.run_key, q.dag_id, q.version_key, q.priority, q.run_after, q.created_at, q.clears
    from dag_run q
    where q.dag_id = w.dag_id and q.state = 'queued' and q.run_after <= now() and q.cancelled_by is null and q.quarantined_at is null
    order by q.priority desc, q.run_after, q.run_key
    limit least(%(share)s, greatest(0, coalesce(l.capacity - l.used, %(share)s)))
    for no key update skip locked
) as r
limit %(limit)s
