-- Events of assets that tasks added to an alias, the newest first.
select {{recorded_asset_event}}
from asset_event e
join asset a on a.name = e.asset
where e.alias = %(alias)s
order by e.event_id desc
limit %(limit)s
