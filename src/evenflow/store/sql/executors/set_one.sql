-- Makes an executor, or changes one; one of another kind is not touched and not answered. Where there is more room now, a wake
-- tells the next round. Under the executor's lock.
with told as (
    insert into executor as e (name, kind, queues, options, version, changed_by)
    values (%(name)s, %(kind)s, %(queues)s::text[], %(options)s::jsonb, 1, %(by)s)
    on conflict (name) do update
    set queues = excluded.queues, options = excluded.options, version = e.version + 1, changed_at = now(),
        changed_by = excluded.changed_by
    where e.kind = excluded.kind
    returning name
), before as (
    select l.limit_id, l.capacity
    from concurrency_limit l
    join told using (name)
    where l.run_key = 0 and l.kind = 'executor'
    for no key update of l
), slots as (
    insert into concurrency_limit as l (kind, name, capacity) select 'executor', name, %(slots)s from told
    on conflict (run_key, kind, name) do update
    set capacity = excluded.capacity, released_at = case when excluded.capacity > l.capacity then now() else l.released_at end
), woken as (
    insert into wake (limit_id, released) select limit_id, 0 from before where capacity < %(slots)s
)
select name from told
