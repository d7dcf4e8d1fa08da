-- Asks the schedulers to end these runs, except those that have ended or whose end was already requested; answers how many.
with asked as (
    insert into report (run_key, kind, epoch, payload)
    select r.run_key, 'cancel', 0, jsonb_build_object('actor', %(actor)s::text)
    from unnest(%(run_keys)s::bigint[]) as k (run_key)
    cross join lateral (select run_key, state from dag_run where dag_run.run_key = k.run_key offset 0) as r
    where r.state in ('queued', 'running')
      and not exists (select from report p where p.run_key = r.run_key and p.epoch = 0 and p.kind = 'cancel')
    returning run_key
)
select count(*)::int as runs from asked
