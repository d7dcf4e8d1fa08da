-- Where the limits that DAGs brought with them differ from what their newest specs say: those of their runs, of their tasks, and of
-- their runs that run. One that a spec lacks now is to be unbounded; one that is new, and is of a DAG or task, has no id yet. With
-- "change", which is for the holder of the executor's lock alone, as all writes to limits that rounds use, capacities become what
-- they are to be; where there is more room then, a wake tells the next round.
with wanted as materialized (
    select * from unnest(%(of)s::text[], %(kinds)s::limit_kind[], %(names)s::text[], %(capacities)s::int[]) as w (dag_id, kind,
        name, capacity)
), stored as materialized (
    select limit_id, kind, name as dag_id, name, capacity
    from concurrency_limit
    where run_key = 0 and kind = 'dag_runs' and name = any(%(dag_ids)s::text[])
    union all
    select limit_id, kind, split_part(name, '/', 1), name, capacity
    from concurrency_limit
    where run_key = 0 and kind = 'dag_task' and split_part(name, '/', 1) = any(%(dag_ids)s::text[])
    union all
    select l.limit_id, l.kind, r.dag_id, l.name, l.capacity
    from concurrency_limit l
    join dag_run r using (run_key)
    where l.run_key > 0 and r.dag_id = any(%(dag_ids)s::text[])
), different as materialized (
    select s.limit_id, s.kind, s.name, s.capacity as before, coalesce(w.capacity, %(unbounded)s::int) as capacity
    from stored s
    left join wanted w using (dag_id, kind, name)
    where s.capacity <> coalesce(w.capacity, %(unbounded)s::int)
), changed as (
    update concurrency_limit l
    set capacity = d.capacity, released_at = case when d.capacity > d.before then now() else l.released_at end
    from different d
    where l.limit_id = d.limit_id and %(change)s::boolean
), woken as (
    insert into wake (limit_id, released) select limit_id, 0 from different where capacity > before and %(change)s::boolean
)
select false as is_new, kind::text, name, capacity from different
union all
select true, w.kind::text, w.name, w.capacity
from wanted w
where w.kind in ('dag_runs', 'dag_task')
  and not exists (select from stored s where s.dag_id = w.dag_id and s.kind = w.kind and s.name = w.name)
