-- Makes a pool, or changes one; a null description stays as it is, and so do the policies of a pool that is there unless they are
-- given. Where there is more room now, or more may pass a task that does not fit, a wake tells the next round. Locked, so that of
-- two changes at the same time the second compares with what the first has written.
with described as (
    insert into pool (name, description, while_deferred)
    values (%(name)s, coalesce(%(description)s::text, ''), coalesce(%(while_deferred)s::text, 'hold'))
    on conflict (name) do update
    set description = coalesce(%(description)s::text, pool.description),
        while_deferred = coalesce(%(while_deferred)s::text, pool.while_deferred)
), before as (
    select l.limit_id, l.capacity, l.patience_s, not %(has_policy)s and p.name is not null as keeps_policy
    from concurrency_limit l
    left join pool p on p.name = l.name
    where l.run_key = 0 and l.kind = 'pool' and l.name = %(name)s
    for no key update of l
), slots as (
    insert into concurrency_limit as l (kind, name, capacity, patience_s) values ('pool', %(name)s, %(slots)s, %(patience_s)s::real)
    on conflict (run_key, kind, name) do update
    set capacity = excluded.capacity,
        patience_s = case when (select keeps_policy from before) then l.patience_s else excluded.patience_s end,
        released_at = case when excluded.capacity > l.capacity then now() else l.released_at end
)
insert into wake (limit_id, released)
select limit_id, 0 from before
where capacity < %(slots)s or not keeps_policy and patience_s < coalesce(%(patience_s)s::real, 'Infinity')
