-- DAGs whose next scheduled run is due, with what was scheduled last, and how many more may wait. A DAG of which enough scheduled
-- runs wait already is left until they have begun, and a continuous one until its last run has ended. One that watches an asset is
-- left, too, until it is its turn and no other DAG with its key watches. SKIP LOCKED: another scheduler creates it.
select d.dag_id, d.version_key, v.outline::text as spec, d.last_logical, d.last_interval_end, d.first_seen_at,
    %(waiting)s - w.n as room, now(), d.forecast::text
from dag d
join dag_version v using (version_key)
cross join lateral (
    select count(*)::int as n
    from (select from dag_run q where q.dag_id = d.dag_id and q.state = 'queued' and q.run_type = 'scheduled'
        limit %(waiting)s) as q
) as w
where d.next_run_at <= now() and d.is_active and w.n < %(waiting)s and d.dag_id <> all(%(served)s::text[])
  and {{takes_runs}}
  and not (v.outline #>> '{schedule,kind}' in ('continuous', 'watch') and exists (
      select from dag_run a where a.dag_id = d.dag_id and a.run_type = 'scheduled' and a.state in ('queued', 'running')))
  and not exists (
      select from asset_watch w
      where w.dag_id = d.dag_id and (not ({{is_watching}}) or exists (
          select from asset_watch o
          join dag_run a on a.dag_id = o.dag_id
          where o.watch_key = w.watch_key and a.state in ('queued', 'running'))))
order by d.next_run_at desc
limit %(limit)s
for no key update of d skip locked
