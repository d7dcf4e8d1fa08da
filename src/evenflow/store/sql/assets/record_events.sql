-- Tasks have changed assets: an event each, and one in the queue of every DAG that waits for the asset or the alias and is not
-- paused. An asset that no DAG file declares is made here, in the order of names, so that two transactions cannot wait for each
-- other. An existing partition is renewed. SKIP LOCKED: the transaction that has it locked renews it at this moment, so this one
-- need not wait.
with given as materialized (
    select *
    from unnest(%(assets)s::text[], %(uris)s::text[], %(extras)s::text[], %(aliases)s::text[], %(partitions)s::text[],
                %(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[])
         as c (asset, uri, extra, alias, named, run_key, task_index, map_index)
), made as (
    insert into asset (name, uri)
    select distinct on (asset) asset, uri from given where not exists (select from asset where name = given.asset) order by asset
    on conflict do nothing
), recorded as (
    insert into asset_event (asset, alias, partition, extra, dag_id, run_id, task_id, map_index, actor)
    select g.asset, g.alias, coalesce(g.named, partition_of(a.partitions, r.logical_date, r.params)), g.extra::jsonb, r.dag_id,
        r.run_id,
           t.task_id, g.map_index, 'scheduler'
    from given g
    join dag_run r using (run_key)
    join task t on t.version_key = r.version_key and t.task_index = g.task_index
    left join asset a on a.name = g.asset
    returning event_id, asset, alias, partition, dag_id, run_id
), newest as materialized (
    select distinct on (asset, partition) asset, partition, event_id, dag_id, run_id
    from recorded
    where partition is not null
    order by asset, partition, event_id desc
), known as (
    select p.asset, p.partition from asset_partition p join newest using (asset, partition) for no key update of p skip locked
), renewed as (
    update asset_partition p
    set event_id = n.event_id, at = now(), dag_id = n.dag_id, run_id = n.run_id, actor = 'scheduler'
    from known k
    join newest n using (asset, partition)
    where p.asset = k.asset and p.partition = k.partition
), added as (
    insert into asset_partition (asset, partition, event_id, dag_id, run_id, actor)
    select asset, partition, event_id, dag_id, run_id, 'scheduler'
    from newest n
    where not exists (select from asset_partition p where p.asset = n.asset and p.partition = n.partition)
    order by asset, partition
    on conflict do nothing
)
insert into asset_queue (dag_id, name, is_alias, event_id)
select c.dag_id, c.name, c.is_alias, e.event_id
from recorded e
cross join lateral (values (e.asset, false), (e.alias, true)) as l (name, is_alias)
join asset_consumer c using (name, is_alias)
join dag d on d.dag_id = c.dag_id and not d.is_paused and d.is_active
