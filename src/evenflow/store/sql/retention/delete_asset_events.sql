-- Old events of assets that no DAG waits for and that made no run that is still there, of the first so many.
with first as (
    select event_id, at from asset_event order by event_id limit %(limit)s
)
delete from asset_event e
using first f
where e.event_id = f.event_id and f.at < %(before)s
  and not exists (select from asset_queue q where q.event_id = e.event_id)
  and not exists (select from run_asset_event r where r.event_id = e.event_id)
returning e.event_id
