-- Reports of runs that have been deleted since, among those at the head of the inbox: no scheduler takes them, so they would hide
-- the others. A report is written after its run, so a report without its run stays without one. SKIP LOCKED: a scheduler takes it.
-- Reports of transactions before "since" are not looked for, as in inbox/lock_runs. Answers how many, and the transaction from
-- which the next look begins.
with said as materialized (
    select ctid, xact from report
    where not held and kind not in ('cancel', 'operate') and xact >= %(since)s::xid8
    order by xact, report_id
    limit %(reports)s
), wish as materialized (
    select ctid, xact from report
    where not held and kind in ('cancel', 'operate') and xact >= %(changes_since)s::xid8
    order by xact, report_id
    limit %(reports)s
), gone as (
    delete from report
    where ctid = any(array(
        select p.ctid
        from report p
        where p.ctid = any(array(select ctid from said union all select ctid from wish))
          and not exists (select from dag_run r where r.run_key = p.run_key)
        for no key update of p skip locked))
    returning report_id
)
select (select count(*) from gone)::int as deleted,
       look_from((select min(xact) from said))::text as since, look_from((select min(xact) from wish))::text as changes_since
