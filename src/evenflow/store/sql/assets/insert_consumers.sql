-- What a DAG waits for.
insert into asset_consumer (dag_id, name, is_alias)
select %(dag_id)s, name, is_alias from unnest(%(names)s::text[], %(aliases)s::boolean[]) as k (name, is_alias)
on conflict do nothing
