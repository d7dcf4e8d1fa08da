-- Reports of runs that have been deleted since, among those at the head of the inbox: nobody takes them, so they would hide the others. A
-- report is written after its run, so one whose run is not there has none. SKIP LOCKED: a scheduler takes it.
delete from report
where ctid = any(array(
    select p.ctid
    from report p
    where p.ctid = any(array(
              (select ctid from report where not held and kind not in ('cancel', 'operate') order by report_id limit %(reports)s)
              union all
              (select ctid from report where not held and kind in ('cancel', 'operate') order by report_id limit %(reports)s)))
      and not exists (select from dag_run r where r.run_key = p.run_key)
    for no key update of p skip locked))
