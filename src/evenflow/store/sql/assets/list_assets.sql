-- Assets by name, with their last event, the DAGs of which the newest events were, and the DAGs that wait for them.
select a.name, a.uri, a.group_name as "group", a.extra, a.partitions,
       (select max(at) from asset_event e where e.asset = a.name) as last_event_at,
       array(select distinct newest.dag_id
             from (select dag_id from asset_event e where e.asset = a.name order by event_id desc limit %(events)s) as newest
             where newest.dag_id is not null order by newest.dag_id) as producers,
       array(select c.dag_id from asset_consumer c where c.name = a.name and not c.is_alias order by c.dag_id) as consumers
from asset a
order by a.name
limit %(limit)s offset %(offset)s
