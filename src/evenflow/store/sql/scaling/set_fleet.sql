-- A fleet, new or changed. One of another target begins anew.
insert into fleet as f (name, target, queues, policy, options, changed_by)
values (%(name)s, %(target)s, %(queues)s::text[], %(policy)s::jsonb, %(options)s::jsonb, %(by)s)
on conflict (name) do update
set queues = excluded.queues, policy = excluded.policy, options = excluded.options, changed_by = excluded.changed_by,
    changed_at = now()
where f.target = excluded.target
returning name
