-- Queued runs that may start, of the DAGs of those that have the highest priorities above 0, the ordinary one: these do not wait until it is
-- their DAG's turn. Of each DAG as many as its max_active_runs leaves, up to a share. SKIP LOCKED: another scheduler has it.
with urgent as materialized (
    select distinct dag_id
    from (select dag_id from dag_run where state = 'queued' and priority > 0 order by priority desc, run_after, run_key limit %(urgent)s) as u
)
select r.run_key, r.dag_id, r.version_key, r.priority, (extract(epoch from r.run_after) * 1e6)::bigint as run_after_us, l.limit_id,
       extract(epoch from greatest(r.run_after, r.created_at, l.released_at))::float8 as due_at_s, r.clears
from urgent u
join dag d on d.dag_id = u.dag_id and not d.is_paused and not exists (
    select from service_state s
    where s.kind = 'dag' and s.name = d.dag_id and s.state = 'draining' or s.kind = 'system' and d.dag_id <> 'evenflow_callbacks')
left join concurrency_limit l on l.run_key = 0 and l.kind = 'dag_runs' and l.name = u.dag_id
cross join lateral (
    select q.run_key, q.dag_id, q.version_key, q.priority, q.run_after, q.created_at, q.clears
    from dag_run q
    where q.dag_id = u.dag_id and q.state = 'queued' and q.priority > 0 and q.run_after <= now() and q.cancelled_by is null
      and q.quarantined_at is null
    order by q.priority desc, q.run_after, q.run_key
    limit least(%(urgent)s, greatest(0, coalesce(l.capacity - l.used, %(urgent)s)))
    for no key update skip locked
) as r
