-- Queued runs that may begin, of the first DAGs that a number of wakes name, those of the highest priority first: of each DAG that
-- is not paused and does not drain, as nothing but callbacks may while the system is not active, as many as its max_active_runs
-- leaves, up to a share. What begins first is in the order of priority; then the first of each line before the second of any, and
-- in a line the first of each DAG. Lines are found by skipping through the index: no further than to the priority of which there
-- are enough. Wakes of transactions before "since" are gone, and yet each look would pass over them while anybody's snapshot is
-- older, so none is looked for. Each row says from which transaction on the next look is to be. Two steps to the next line: a
-- comparison of both columns at once could not skip what is gone. The wakes of DAGs of which something begins go, and of those of
-- which nothing may; the others keep their place. A DAG of which more may begin than is answered gets a new one behind those of its
-- line. The caller makes one for what it leaves. A wake and what it is about are committed together, so one that is seen here is
-- about nothing that is not; one of a priority that its DAG has not any more is replaced. What is said of DAGs and of wakes is put
-- together by sorting: a join of the parts would read each for each row of the other. SKIP LOCKED: another scheduler has the run.
-- Its state is compared as text for the plan's sake: the index of queued runs, of which the planner thinks that it is small, must
-- not be read whole for each run. A turn that had more to begin asks for it with its first statements, before it knows that it has
-- the executor's lock again: without that nothing is taken. The first row says too whether there may be more; without any run it
-- has 0.
with recursive line as (
    (select priority, line, 1 as n, 0::bigint as above
     from run_wake
     where current_setting('evenflow.lead', true) is distinct from 'false' and xact >= %(since)s::xid8 and due_at <= now()
     order by priority desc, line desc
     limit 1)
    union all
    select x.priority, x.line, l.n + 1,
           l.above + (
               select count(*)
               from (select from run_wake w
                     where w.priority = l.priority and w.line = l.line and xact >= %(since)s::xid8 and due_at <= now()
                     limit %(wakes)s) as w)
    from line l
    cross join lateral (
        (select priority, line from run_wake
         where priority = l.priority and line < l.line and xact >= %(since)s::xid8 and due_at <= now()
         order by priority desc, line desc
         limit 1)
        union all
        (select priority, line from run_wake
         where priority < l.priority and xact >= %(since)s::xid8 and due_at <= now()
         order by priority desc, line desc
         limit 1)
        order by priority desc, line desc
        limit 1
    ) as x
    where l.n < %(lines)s and (l.above < %(wakes)s or x.priority = l.priority)
), first as materialized (
    select w.*
    from line l
    cross join lateral (
        select dag_id, wake_id, xact, priority, line, row_number() over (order by xact, wake_id) as place
        from run_wake w
        where w.priority = l.priority and w.line = l.line and xact >= %(since)s::xid8 and due_at <= now()
        order by xact, wake_id
        limit %(wakes)s
    ) as w
    order by w.priority desc, w.place, w.wake_id
    limit %(wakes)s
), named as materialized (
    select dag_id, min(line) as line, min(xact) as xact, min(wake_id) as wake_id
    from first
    group by dag_id
    order by max(priority) desc, min(place), min(wake_id)
    limit %(dags)s
), open as materialized (
    select w.dag_id, w.line, w.xact, w.wake_id, l.limit_id, l.released_at,
        least(%(share)s, greatest(0, coalesce(l.capacity - l.used, %(share)s))) as most
    from named w
    join dag d on d.dag_id = w.dag_id and {{takes_runs}}
    left join lateral (
        select limit_id, capacity, used, released_at from concurrency_limit where run_key = 0 and kind = 'dag_runs'
            and name = w.dag_id offset 0
    ) as l on true
), candidate as materialized (
    select x.*, row_number() over (order by x.priority desc, x.turn, x.run_after, x.run_key) as rank
    from (
        select r.*, o.xact, o.wake_id, o.limit_id, o.most, greatest(r.run_after, r.created_at, o.released_at) as due_at,
               row_number() over (partition by r.priority, o.line order by r.place, r.run_after, r.run_key) as turn
        from open o
        cross join lateral (
            select q.run_key, q.dag_id, q.priority, q.run_after, q.created_at,
                   row_number() over (order by {{runs_in_order}}) as place
            from dag_run q
            where q.dag_id = o.dag_id and q.state = 'queued' and q.run_after <= now() and q.cancelled_by is null
                and q.quarantined_at is null
            order by {{runs_in_order}}
            limit o.most
        ) as r
    ) as x
), locked as materialized (
    select q.run_key, q.dag_id, q.version_key, q.priority, (extract(epoch from q.run_after) * 1e6)::bigint as run_after_us,
        c.limit_id,
           extract(epoch from c.due_at)::float8 as due_at_s, q.clears, q.interrupted, c.wake_id, c.xact, c.rank
    from candidate c
    join dag_run q using (run_key)
    where c.rank <= %(limit)s and q.state::text = 'queued' and q.cancelled_by is null and q.quarantined_at is null
    for no key update of q skip locked
), judged as materialized (
    select dag_id, max(line) as line, coalesce(max(priority) filter (where rank > %(limit)s), min(priority)) as priority,
           min(rank) <= %(limit)s as begins, count(rank) = max(most) or count(rank) > sum(begun) as more
    from (
        select dag_id, line, null::int as priority, null::bigint as rank, null::int as most, 0 as begun from named
        union all
        select dag_id, null, priority, rank, most, 0 from candidate
        union all
        select dag_id, null, null, null, null, 1 from locked
    ) as x
    group by dag_id
), settled as materialized (
    select x.*, bool_or(keeps) over (partition by dag_id) as stays
    from (
        select dag_id, wake_id, line, priority, more, bool_or(wake_id is null) over d as looked_at,
               wake_id is not null and not bool_or(begins) over d and priority = max(own) over d as keeps
        from (
            select dag_id, wake_id, line, priority, null::int as own, null::boolean as begins, null::boolean as more from first
            union all
            select dag_id, null, line, priority, priority, begins, more from judged
        ) as w
        window d as (partition by dag_id)
    ) as x
), gone as (
    delete from run_wake w using settled s
    where w.dag_id = s.dag_id and w.wake_id = s.wake_id and s.looked_at and s.keeps is not true
), again as (
    insert into run_wake (dag_id, priority, line)
    select dag_id, priority, line from settled where wake_id is null and more and stays is not true
)
select coalesce(l.run_key, 0) as run_key, l.dag_id, l.version_key, l.priority, l.run_after_us, l.limit_id, l.due_at_s, l.clears,
    l.interrupted, l.wake_id, l.xact::text, m.more,
       look_from((select min(xact) from run_wake where xact >= %(since)s::xid8))::text as since
from (
    select (select count(*) = %(wakes)s from first) or (select count(*) = %(dags)s from named) or count(*) > %(limit)s
        or coalesce(max(place) = %(share)s, false) as more from candidate
) as m
left join locked l on true
order by l.rank
