-- Limits of DAGs and tasks that had none.
insert into concurrency_limit (kind, name, capacity)
select * from unnest(%(kinds)s::limit_kind[], %(names)s::text[], %(capacities)s::int[])
