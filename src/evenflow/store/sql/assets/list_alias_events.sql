-- Events of assets that tasks added to an alias, the newest first.
select e.event_id, e.asset, a.uri, e.at, e.extra, e.alias, e.partition, e.dag_id, e.run_id, e.task_id, e.map_index, e.actor
from asset_event e
join asset a on a.name = e.asset
where e.alias = %(alias)s
order by e.event_id desc
limit %(limit)s offset %(offset)s
