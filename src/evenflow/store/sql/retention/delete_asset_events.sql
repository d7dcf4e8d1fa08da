-- Deletes old events of assets that no DAG waits for and that made no run that is still there, up to a limit. The oldest that are
-- young end the look; those that are old and wait are bounded, see retention/trim_asset_queue.
delete from asset_event e
where event_id = any(array(
    select o.event_id
    from asset_event o
    where o.event_id < (
        select coalesce((select y.event_id from asset_event y where y.at >= %(before)s order by y.event_id limit 1),
        9223372036854775807))
      and o.at < %(before)s
      and not exists (select from asset_queue q where q.event_id = o.event_id)
      and not exists (select from run_asset_event r where r.event_id = o.event_id)
    order by o.event_id
    limit %(limit)s))
returning e.event_id
