-- The events that made a run, the newest first.
select e.event_id, e.asset, a.uri, e.at, e.extra, e.alias, e.partition, e.dag_id, e.run_id, e.task_id, e.map_index, e.actor
from run_asset_event x
join asset_event e using (event_id)
join asset a on a.name = e.asset
where x.run_key = %(run_key)s
order by e.event_id desc
limit %(limit)s
