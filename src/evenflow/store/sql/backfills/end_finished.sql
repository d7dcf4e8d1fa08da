-- Backfills of which every date has its run, and every run its end.
update backfill b set ended_at = now()
where b.ended_at is null
  and not exists (select from backfill_run x where x.backfill_id = b.backfill_id and x.run_key is null and x.passed_over is null)
  and not exists (
      select from backfill_run x
      join dag_run r using (run_key)
      where x.backfill_id = b.backfill_id
        and (r.state in ('queued', 'running') or exists (select from report p where p.run_key = r.run_key and p.kind = 'operate')))
