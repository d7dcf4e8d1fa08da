-- A DAG without runs goes, with its versions and backfills. Its logs are for the API to delete.
with dags as (
    delete from dag where dag_id = %(dag_id)s
), versions as (
    delete from dag_version where dag_id = %(dag_id)s
), fills as (
    delete from backfill where dag_id = %(dag_id)s
), consumed as (
    delete from asset_consumer where dag_id = %(dag_id)s
), produced as (
    delete from asset_producer where dag_id = %(dag_id)s
), watched as (
    delete from asset_watch where dag_id = %(dag_id)s
), queued as (
    delete from asset_queue where dag_id = %(dag_id)s
), opened as (
    delete from service_state where kind = 'dag' and name = %(dag_id)s
)
insert into log_garbage (dag_id, run_id) values (%(dag_id)s, '') on conflict do nothing
