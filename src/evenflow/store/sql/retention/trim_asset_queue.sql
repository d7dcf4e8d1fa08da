-- Of the events of one asset that a DAG waits with, only a number of the newest stay: a DAG that waits for another asset too, or is
-- paused, does not gather them for ever. Under the lock of the DAG's row (SKIP LOCKED: its run is just being made), like the
-- transaction that makes the run and takes them.
with long as materialized (
    select c.dag_id, c.name, c.is_alias, o.event_id
    from asset_consumer c
    join dag d using (dag_id)
    cross join lateral (
        select q.event_id from asset_queue q
        where q.dag_id = c.dag_id and q.name = c.name and q.is_alias = c.is_alias
        order by q.event_id desc
        offset %(kept)s limit 1
    ) as o
    order by c.dag_id
    limit 100
    for no key update of d skip locked
)
delete from asset_queue
where ctid = any(array(
    select q.ctid
    from long l
    join asset_queue q on q.dag_id = l.dag_id and q.name = l.name and q.is_alias = l.is_alias and q.event_id <= l.event_id
    limit %(limit)s))
