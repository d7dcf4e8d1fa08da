-- What is decided for a pool or executor beyond the order; nothing is answered where there is none. Tenants get their new weights
-- at once; the rest counts for what becomes ready from now on. Each change counts up the sum of all versions, in whichever order
-- changes are committed.
with changed as (
    insert into sharing as s (limit_id, aging_s, share_by, weights, version)
    select limit_id, %(aging_s)s::int, %(share_by)s::text, %(weights)s::jsonb, 1
    from concurrency_limit
    where run_key = 0 and kind = %(kind)s::limit_kind and name = %(name)s
    on conflict (limit_id) do update
    set aging_s = excluded.aging_s, share_by = excluded.share_by, weights = excluded.weights, version = s.version + 1
    returning limit_id, weights
), weighed as (
    update tenant t set weight = coalesce((c.weights ->> t.name)::int, 1) from changed c where t.scope_id = c.limit_id
)
select limit_id from changed
