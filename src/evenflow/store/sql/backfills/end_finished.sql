-- Backfills of which every date has its run, and every run its end. What is still to do is looked for, not what is done.
update backfill b set ended_at = now()
where b.ended_at is null
  and not exists (select from backfill_run x where x.backfill_id = b.backfill_id and x.run_key is null and x.passed_over is null)
  and not exists (select from dag_run r where r.backfill_id = b.backfill_id and r.state in ('queued', 'running'))
  and not exists (select from report p join dag_run r using (run_key) where p.kind = 'operate' and r.backfill_id = b.backfill_id)
