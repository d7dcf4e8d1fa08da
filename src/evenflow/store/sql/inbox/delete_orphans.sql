-- Reports of runs that have been deleted since, among those at the head of the inbox: nobody takes them, so they would hide the others. A
-- report is written after its run, so one whose run is not there has none. SKIP LOCKED: a scheduler takes it.
delete from report
where ctid = any(array(
    select p.ctid
    from (select run_key, report_id from report where not held order by report_id limit %(reports)s) as oldest
    join report p using (run_key, report_id)
    where not exists (select from dag_run r where r.run_key = p.run_key)
    for no key update of p skip locked))
