-- Other capacities for limits. Where there is more room now, a wake tells the next round. Only under the executor's lock, as all
-- writes to limits that rounds use.
with given as (
    select l.limit_id, l.capacity as before, g.capacity
    from unnest(%(limits)s::bigint[], %(capacities)s::int[]) as g (limit_id, capacity)
    join concurrency_limit l using (limit_id)
), changed as (
    update concurrency_limit l
    set capacity = g.capacity, released_at = case when g.capacity > g.before then now() else l.released_at end
    from given g
    where l.limit_id = g.limit_id
)
insert into wake (limit_id, released) select limit_id, 0 from given where capacity > before
