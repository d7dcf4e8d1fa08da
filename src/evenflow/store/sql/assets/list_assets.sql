-- Assets by name, with their last event, the DAGs of which the newest events were, and the DAGs that wait for them.
select a.name, a.uri, a.group_name as "group", a.extra, a.partitions,
       (select max(at) from asset_event e where e.asset = a.name) as last_event_at,
       array(select distinct newest.dag_id
             from (select dag_id from asset_event e where e.asset = a.name order by event_id desc limit %(events)s) as newest
             where newest.dag_id is not null and (%(scope)s::jsonb is null or newest.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
             order by newest.dag_id) as producers,
       array(select c.dag_id from asset_consumer c where c.name = a.name and not c.is_alias and (%(scope)s::jsonb is null or c.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
             order by c.dag_id) as consumers
from asset a
where %(scope)s::jsonb is null or a.name in (select assets_in_scope(%(scope)s::jsonb))
order by a.name
limit %(limit)s offset %(offset)s
