-- Events of an asset, the newest first.
select e.event_id, e.asset, a.uri, e.at, e.extra, e.alias, e.partition, e.dag_id, e.run_id, e.task_id, e.map_index, e.actor
from asset_event e
join asset a on a.name = e.asset
where e.asset = %(asset)s and (%(scope)s::jsonb is null or e.dag_id in (select dags_in_scope(%(scope)s::jsonb)) or e.dag_id is null and e.asset in (select assets_in_scope(%(scope)s::jsonb)))
order by e.event_id desc
limit %(limit)s offset %(offset)s
