-- Whether the DAG "d" is to watch the asset of its row "w" of asset_watch: it is on, a DAG that is on waits for the asset, and no
-- DAG before it that is on has the same key.
d.is_active and not d.is_paused
and exists (
    select from asset_consumer c
    join dag u on u.dag_id = c.dag_id
    where c.name = w.asset and not c.is_alias and u.is_active and not u.is_paused)
and not exists (
    select from asset_watch b
    join dag e on e.dag_id = b.dag_id
    where b.watch_key = w.watch_key and b.dag_id < w.dag_id and e.is_active and not e.is_paused)
