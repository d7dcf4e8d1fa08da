-- Backfills that have runs to make, and how many: as many as the limit of each leaves. A run that is to run again counts from the
-- moment when that was asked for. SKIP LOCKED: another scheduler makes them.
with asked as materialized (
    select r.backfill_id, count(distinct r.run_key)::int as n
    from report p
    join dag_run r using (run_key)
    where p.kind = 'operate' and r.backfill_id is not null and r.state not in ('queued', 'running')
    group by r.backfill_id
)
select b.backfill_id, b.max_active_runs - a.n - coalesce(asked.n, 0) as room
from backfill b
join dag d using (dag_id)
left join asked using (backfill_id)
cross join lateral (
    select count(*)::int as n from dag_run r where r.backfill_id = b.backfill_id and r.state in ('queued', 'running')
) as a
where b.ended_at is null and not exists (select from quarantine q where q.kind = 'backfill' and q.object = b.backfill_id::text)
  and not b.is_paused and d.is_active and a.n + coalesce(asked.n, 0) < b.max_active_runs
  and exists (select from backfill_run x where x.backfill_id = b.backfill_id and x.run_key is null and x.passed_over is null)
order by b.backfill_id
limit %(limit)s
for no key update of b skip locked
