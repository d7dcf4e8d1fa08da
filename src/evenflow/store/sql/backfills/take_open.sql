-- Backfills that may make runs, and how many: as many as its limit leaves. A run that is to run again counts from the moment when that was
-- asked for. SKIP LOCKED: another scheduler makes them.
select b.backfill_id, b.max_active_runs - a.n as room
from backfill b
join dag d using (dag_id)
cross join lateral (
    select count(*)::int as n
    from dag_run r
    where r.backfill_id = b.backfill_id
      and (r.state in ('queued', 'running') or exists (select from report p where p.run_key = r.run_key and p.kind = 'operate'))
) as a
where b.ended_at is null and not b.is_paused and d.is_active and a.n < b.max_active_runs
order by b.backfill_id
limit %(limit)s
for no key update of b skip locked
