-- max_active_tis_per_dag of a DAG's tasks. One that the newest version has no more stays, unbounded: tries of older runs hold it and lanes
-- may be parked on it. Where there is more room now, a wake tells the next round.
with given as (
    select name, capacity from unnest(%(names)s::text[], %(capacities)s::int[]) as g (name, capacity)
), before as (
    select limit_id, name, capacity from concurrency_limit
    where run_key = 0 and kind = 'dag_task' and starts_with(name, %(dag_id)s || '/')
), lifted as (
    update concurrency_limit l set capacity = 2147483647
    from before b
    where l.limit_id = b.limit_id and b.name not in (select name from given)
), set_ as (
    insert into concurrency_limit (kind, name, capacity)
    select 'dag_task', name, capacity from given order by name
    on conflict (run_key, kind, name) do update set capacity = excluded.capacity
    where concurrency_limit.capacity <> excluded.capacity
)
insert into wake (limit_id, released)
select b.limit_id, 0
from before b
left join given g using (name)
where coalesce(g.capacity, 2147483647) > b.capacity
