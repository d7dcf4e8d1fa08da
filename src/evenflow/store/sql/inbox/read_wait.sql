-- For how long what came first has waited, a report or a due timer: null when nothing waits, negative until the next timer. Whether
-- reports of more runs than one turn takes are among the first. And from which transaction on the next look is to be, as in
-- inbox/lock_runs. What people want is for the holder of the executor's lock alone.
with head as materialized (
    select xact, at from report
    where not held and kind not in ('cancel', 'operate') and xact >= %(since)s::xid8
    order by xact, report_id
    limit 1
)
select extract(epoch from now() - least((select at from head), (select min(due_at) from timer where not held)))::float8 as waited_s,
       (select count(distinct run_key) > %(runs)s
        from (select run_key from report
              where not held and kind not in ('cancel', 'operate') and xact >= %(since)s::xid8
              order by xact, report_id limit %(reports)s) as said) as crowded,
       look_from((select xact from head))::text as since
