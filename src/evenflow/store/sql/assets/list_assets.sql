-- Assets by name, or the one that is named, with their last event, the DAGs that make them, and the DAGs that wait for them.
select jsonb_build_array(a.name) as place, a.name, a.uri, a.group_name as "group", a.extra, a.partitions,
       (select at from asset_event e where e.asset = a.name order by event_id desc limit 1) as last_event_at,
       array(select maker from producers_of(a.name) as maker
           where (%(scope)s::jsonb is null or maker in (select dags_in_scope(%(scope)s::jsonb)))
             order by maker) as producers,
       array(select c.dag_id from asset_consumer c where c.name = a.name and not c.is_alias
           and (%(scope)s::jsonb is null or c.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
             order by c.dag_id) as consumers
from asset a
where (%(asset)s::text is null or a.name = %(asset)s)
  and (%(scope)s::jsonb is null or a.name in (select assets_in_scope(%(scope)s::jsonb)))
  and (%(after)s::jsonb is null or a.name > %(after)s::jsonb ->> 0)
order by a.name
limit %(limit)s
