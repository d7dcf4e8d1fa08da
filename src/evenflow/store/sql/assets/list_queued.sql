-- The assets of which a DAG has events in its queue, read under the lock of the DAG's row.
select distinct name, is_alias from asset_queue where dag_id = %(dag_id)s
