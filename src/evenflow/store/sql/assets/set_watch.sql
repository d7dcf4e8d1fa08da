-- What a DAG watches; an empty asset: nothing.
with gone as (
    delete from asset_watch where dag_id = %(dag_id)s and %(asset)s = ''
)
insert into asset_watch (dag_id, asset, watch_key)
select %(dag_id)s, %(asset)s, %(watch_key)s where %(asset)s <> ''
on conflict (dag_id) do update set asset = excluded.asset, watch_key = excluded.watch_key
