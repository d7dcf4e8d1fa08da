-- Makes a pool, or changes one; a null description stays as it is. Where there is more room now, a wake tells the next round.
with described as (
    insert into pool (name, description) values (%(name)s, coalesce(%(description)s::text, ''))
    on conflict (name) do update set description = coalesce(%(description)s::text, pool.description)
), before as (
    select limit_id, capacity from concurrency_limit where run_key = 0 and kind = 'pool' and name = %(name)s
), slots as (
    insert into concurrency_limit (kind, name, capacity) values ('pool', %(name)s, %(slots)s)
    on conflict (run_key, kind, name) do update set capacity = excluded.capacity
)
insert into wake (limit_id, released) select limit_id, 0 from before where capacity < %(slots)s
