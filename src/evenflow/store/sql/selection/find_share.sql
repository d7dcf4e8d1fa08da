-- The share of a tenant in a pool or executor, made if there is none. Those that make one go one after the other until they commit,
-- as those that make limit classes do, for each may make several in an order of its own.
with known as materialized (
    select limit_id from tenant where scope_id = %(scope_id)s and name = %(name)s
), fresh as materialized (
    select pg_advisory_xact_lock(7311146993655185) where not exists (select from known)
), made as (
    insert into concurrency_limit (kind, name, capacity)
    select 'share', %(scope_id)s::text || '/' || %(name)s::text, 2147483647 from fresh
    on conflict (run_key, kind, name) do update set name = excluded.name
    returning limit_id
), named as (
    insert into tenant (limit_id, scope_id, name, weight)
    select m.limit_id, s.limit_id, %(name)s, coalesce((s.weights ->> %(name)s::text)::int, 1)
    from made m
    join sharing s on s.limit_id = %(scope_id)s
    on conflict do nothing
)
select limit_id from known
union all
select limit_id from made
