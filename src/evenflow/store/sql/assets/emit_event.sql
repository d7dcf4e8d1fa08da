-- A person says that an asset, or a partition of it, has changed: as for an event of a task. No row: the asset does not exist, or
-- is outside the person's scope.
with recorded as (
    insert into asset_event (asset, partition, extra, actor)
    select name, %(partition)s, %(extra)s::jsonb, %(actor)s from asset where name = %(asset)s
        and (%(scope)s::jsonb is null or makes_in_scope(%(scope)s::jsonb, name))
    returning event_id, asset, partition, at
), queued as (
    {{queued_asset_events}}
    returning dag_id
), renewed as (
    insert into asset_partition (asset, partition, event_id, at, actor)
    select asset, partition, event_id, at, %(actor)s from recorded where partition is not null
    on conflict (asset, partition) do update
    set event_id = excluded.event_id, at = excluded.at, dag_id = null, run_id = null, actor = excluded.actor
)
select event_id, at,
    array(select dag_id from queued where (%(scope)s::jsonb is null or dag_id in (select dags_in_scope(%(scope)s::jsonb)))
    order by dag_id) as dag_ids from recorded
