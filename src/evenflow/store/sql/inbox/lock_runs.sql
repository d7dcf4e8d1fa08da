-- Runs that have reports or due timers, the oldest report first, found among a number of reports. Of timers that a run has set for
-- one moment the first says it all: the others are skipped in the index, and a number of moments are looked at. Beside them, for
-- the holder of the executor's lock, runs that people want something of: looked for in an index of their own, so that a great many
-- of these hide nothing else, and only as many as one transaction applies. SKIP LOCKED: one scheduler applies a run at a time and
-- none waits; runs of others do not count against the limit, so that each of several finds as many as it can apply; LATERAL: run by
-- run, whatever the planner believes of how many there are; NO KEY: rows that refer to the run may be inserted meanwhile. A
-- scheduler without the executor's lock leaves all to the holder until the oldest report or timer has waited for too long. Without
-- that rule each notification would send all schedulers to the same runs. Nor does it go where others are at work. The holder takes
-- the oldest runs, so it begins with the newest, which came when the others had begun. Of more than six turns' worths it leaves out
-- as many of the newest as "spread" says, which is at least 0 and below 1, but comes no nearer to the oldest than that, so that
-- none in the middle waits for long. Where fewer wait than a turn takes it takes half of them. Each row says how many it came to;
-- when all of them were skipped, or there were none, a single row says so, whose run is 0. Reports of transactions before "since"
-- are not looked for: they are taken, and yet each look would pass over them while anybody's snapshot is older. Each row says from
-- which transaction on the next look is to be. The transaction remembers which runs it has locked and may decide about, for
-- inbox/take_reports, which is sent before the answer is here: all but those in quarantine, and while a fault is looked for only
-- some.
with recursive head as materialized (
    select xact, at from report
    where not held and kind not in ('cancel', 'operate') and xact >= %(since)s::xid8
    order by xact, report_id
    limit 1
), wish as materialized (
    select xact from report
    where not held and kind in ('cancel', 'operate') and xact >= %(changes_since)s::xid8
    order by xact, report_id
    limit 1
), due as (
    (select due_at, run_key, 1 as n from timer where due_at <= now() and not held order by due_at, run_key limit 1)
    union all
    select x.due_at, x.run_key, due.n + 1
    from due
    cross join lateral (
        select due_at, run_key from timer
        where (due_at, run_key) > (due.due_at, due.run_key) and due_at <= now() and not held
        order by due_at, run_key
        limit 1
    ) as x
    where due.n < %(instants)s
), waiting as materialized (
    select run_key, min(first) as first, row_number() over (order by min(first)) - 1 as place, count(*) over () as n
    from (
        (select run_key, report_id as first from report
         where not held and kind not in ('cancel', 'operate') and xact >= %(since)s::xid8
         order by xact, report_id limit %(reports)s)
        union all
        (select run_key, 0 from due)
        union all
        (select run_key, report_id from report
         where not held and kind in ('cancel', 'operate') and xact >= %(changes_since)s::xid8
           and current_setting('evenflow.lead')::boolean
         order by xact, report_id limit %(changes)s)
    ) as said
    where (%(only)s::bigint[] is null or run_key = any(%(only)s::bigint[]))
      and (current_setting('evenflow.lead')::boolean
           or (select at from head) <= now() - make_interval(secs => %(helps_after)s)
           or (select min(due_at) from timer where not held) <= now() - make_interval(secs => %(helps_after)s))
    group by run_key
), aimed as materialized (
    select run_key, first,
           case when in_order then place
                else (2 * n - 1 - place - %(limit)s * floor(%(spread)s::float8 * greatest(0,
                    (n - 1) / %(limit)s - 5))::bigint) %% n end as rank,
           case when in_order or n > %(limit)s then %(limit)s else (n + 1) / 2 end as most
    from waiting
    cross join (select current_setting('evenflow.lead')::boolean or %(only)s::bigint[] is not null as in_order) as a
), locked as (
    select r.*, w.first, w.rank
    from (select run_key, first, rank from aimed order by rank) as w
    cross join lateral (
        select run_key, dag_id, version_key, state::text, priority,
               (extract(epoch from run_after) * 1e6)::bigint as run_after_us, cancelled_by,
               (select is_paused from dag where dag.dag_id = dag_run.dag_id) as is_paused, clears,
               interrupted, branched, unfinished, quarantined_at is not null as in_quarantine
        from dag_run
        where dag_run.run_key = w.run_key
        for no key update skip locked
    ) as r
    limit (select most from aimed limit 1)
)
select coalesce(l.run_key, 0) as run_key, l.dag_id, l.version_key, l.state, l.priority, l.run_after_us, l.cancelled_by, l.is_paused,
    l.clears,
       l.interrupted, l.branched, l.unfinished, l.in_quarantine, w.found,
       look_from((select xact from head))::text as since, look_from((select xact from wish))::text as changes_since
from (
    select count(*)::int as found,
           set_config('evenflow.runs', (
               select coalesce(array_agg(run_key order by first), '{}')::text from locked
               where not in_quarantine
           ), true)
    from aimed
    where (select count(*) from locked) < most or rank <= (select max(rank) from locked)
) as w
left join locked l on true
order by l.first
