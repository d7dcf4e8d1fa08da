-- Queued runs that may begin, of the DAGs that so many wakes name, those of the highest priority first: of each DAG that is not paused and
-- does not drain, as nothing but callbacks may while the system is not active, as many as its max_active_runs leaves, up to a share.
-- What begins first is in the order of priority, then the first of each DAG before the second of any. The wakes go; a DAG
-- of which anything may begin gets a new one behind all others, which also covers what is locked, what the caller leaves, and room that it
-- makes in this transaction. A wake and what it is about are committed together, so one that is seen here is about nothing that is not.
-- SKIP LOCKED: another scheduler has the run. The first row says too whether there may be more; without any run it has 0.
with first as materialized (
    select dag_id, wake_id from run_wake where due_at <= now() order by priority desc, wake_id limit %(wakes)s
), gone as (
    delete from run_wake w using first f where w.dag_id = f.dag_id and w.wake_id = f.wake_id
), candidate as materialized (
    select r.*, l.limit_id, greatest(r.run_after, r.created_at, l.released_at) as due_at,
           row_number() over (order by r.priority desc, r.place, r.run_after, r.run_key) as rank
    from (select distinct dag_id from first) as w
    join dag d on d.dag_id = w.dag_id and not d.is_paused and not exists (
        select from service_state s
        where s.kind = 'dag' and s.name = d.dag_id and s.state = 'draining' or s.kind = 'system' and d.dag_id <> 'evenflow_callbacks')
    left join concurrency_limit l on l.run_key = 0 and l.kind = 'dag_runs' and l.name = w.dag_id
    cross join lateral (
        select q.run_key, q.dag_id, q.priority, q.run_after, q.created_at,
               row_number() over (order by q.priority desc, q.run_after, q.run_key) as place
        from dag_run q
        where q.dag_id = w.dag_id and q.state = 'queued' and q.run_after <= now() and q.cancelled_by is null and q.quarantined_at is null
        order by q.priority desc, q.run_after, q.run_key
        limit least(%(share)s, greatest(0, coalesce(l.capacity - l.used, %(share)s)))
    ) as r
), again as (
    insert into run_wake (dag_id, priority)
    select dag_id, coalesce(max(priority) filter (where rank > %(limit)s), min(priority)) from candidate group by dag_id
), locked as materialized (
    select q.run_key, q.dag_id, q.version_key, q.priority, (extract(epoch from q.run_after) * 1e6)::bigint as run_after_us, c.limit_id,
           extract(epoch from c.due_at)::float8 as due_at_s, q.clears, c.rank
    from candidate c
    join dag_run q using (run_key)
    where c.rank <= %(limit)s and q.state = 'queued' and q.cancelled_by is null and q.quarantined_at is null
    for no key update of q skip locked
)
select coalesce(l.run_key, 0) as run_key, l.dag_id, l.version_key, l.priority, l.run_after_us, l.limit_id, l.due_at_s, l.clears, m.more
from (
    select (select count(*) = %(wakes)s from first) or count(*) > %(limit)s or coalesce(max(place) = %(share)s, false) as more from candidate
) as m
left join locked l on true
order by l.rank
