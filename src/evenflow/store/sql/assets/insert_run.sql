-- The run of a DAG whose condition holds, with every event of its queue. The caller has locked the DAG's row, so no other
-- transaction takes these events; an event that commits later stays for the next run.
with run as (
    insert into dag_run (dag_id, run_id, version_key, run_type, params)
    values (%(dag_id)s, %(run_id)s, %(version_key)s, 'asset_triggered', %(params)s)
    returning run_key
), taken as (
    delete from asset_queue where dag_id = %(dag_id)s returning event_id
)
insert into run_asset_event (run_key, event_id)
select distinct run.run_key, taken.event_id from run, taken
