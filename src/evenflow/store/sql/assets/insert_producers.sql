-- What a DAG makes.
insert into asset_producer (dag_id, name)
select %(dag_id)s, name from unnest(%(names)s::text[]) as k (name)
on conflict do nothing
