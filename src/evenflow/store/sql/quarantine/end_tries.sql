-- Ends the tries of a run that cannot be decided about: those that a worker runs are to be killed, all others go and what they hold
-- is released. Deferred tasks do not wait any longer. Answers how many run. Locked FOR UPDATE: no worker claims one meanwhile.
with tries as materialized (
    select d.epoch, d.holds, d.pool_slots,
           d.worker_id is not null and not exists (
               select from report p where p.run_key = d.run_key and p.epoch = d.epoch and p.kind in ('exit', 'lost')
           ) as runs
    from task_instance t
    join dispatch d using (epoch)
    where t.run_key = %(run_key)s and t.state in ('queued', 'running')
    for update of d
), killed as (
    update dispatch d set kill_at = coalesce(d.kill_at, now()) from tries where d.epoch = tries.epoch and tries.runs
), gone as (
    delete from dispatch d using tries where d.epoch = tries.epoch and not tries.runs
), waits as (
    delete from deferral where run_key = %(run_key)s returning holds, pool_slots
), woken as (
    insert into wake (limit_id, released)
    select h.limit_id, sum(case when h.position = 1 and x.pool_slots > 0 then x.pool_slots else 1 end)::int
    from (select holds, pool_slots from tries where not runs union all select holds, pool_slots from waits) as x
    cross join lateral unnest(x.holds) with ordinality as h (limit_id, position)
    group by h.limit_id
)
select count(*)::int from tries where runs
