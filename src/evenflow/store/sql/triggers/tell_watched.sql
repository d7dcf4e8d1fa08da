-- An event of the asset that the DAG of a trigger watches, and one in the queue of every DAG that waits for it and is not paused.
-- A claim of a trigger numbers what it tells, so that an event that is told again changes nothing. No row: the claim is over. The
-- row is locked, so that the trigger is not given to another claim meanwhile.
with claimed as materialized (
    select run_key, task_index, map_index, told < %(claim)s::bigint << 32 | %(number)s as is_new
    from deferral
    where run_key = %(run_key)s and task_index = %(task_index)s and map_index = %(map_index)s and epoch = %(epoch)s
      and claim_number = %(claim)s and triggerer_id is not null and purpose is null
    for no key update
), counted as (
    update deferral d set told = %(claim)s::bigint << 32 | %(number)s
    from claimed c
    where c.is_new and d.run_key = c.run_key and d.task_index = c.task_index and d.map_index = c.map_index
), recorded as (
    insert into asset_event (asset, extra, dag_id, run_id, task_id, map_index, actor)
    select w.asset, %(extra)s::jsonb, r.dag_id, r.run_id, t.task_id, c.map_index, 'trigger'
    from claimed c
    join dag_run r using (run_key)
    join task t on t.version_key = r.version_key and t.task_index = c.task_index
    join asset_watch w on w.dag_id = r.dag_id
    where c.is_new
    returning event_id, asset
), queued as (
    {{queued_asset_events}}
)
select is_new from claimed
