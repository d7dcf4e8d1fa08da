-- Events of all assets, the newest first.
select {{recorded_asset_event}}
from asset_event e
join asset a on a.name = e.asset
where (%(scope)s::jsonb is null or e.dag_id in (select dags_in_scope(%(scope)s::jsonb)) or e.dag_id is null
    and e.asset in (select assets_in_scope(%(scope)s::jsonb)))
  and (%(after)s::jsonb is null or e.event_id < (%(after)s::jsonb ->> 0)::bigint)
order by e.event_id desc
limit %(limit)s
