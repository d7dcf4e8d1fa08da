-- Puts each event of "recorded" into the queue of every DAG that waits for its asset by name and is not paused.
insert into asset_queue (dag_id, name, is_alias, event_id)
select c.dag_id, c.name, c.is_alias, e.event_id
from recorded e
join asset_consumer c on c.name = e.asset and not c.is_alias
join dag d on d.dag_id = c.dag_id and not d.is_paused and d.is_active
