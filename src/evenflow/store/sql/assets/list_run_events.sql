-- The events that made a run, the newest first.
select {{recorded_asset_event}}
from run_asset_event x
join asset_event e using (event_id)
join asset a on a.name = e.asset
where x.run_key = %(run_key)s
order by e.event_id desc
limit %(limit)s
