-- What needs this code: whether the service has a try, a callback or a trigger of it in hand, and the newest versions that it is
-- of, with the bundles where these were found first.
with version as materialized (
    select version_key, bundle from dag_version where code_hash = %(code_hash)s
    order by version_key desc
    limit %(most)s
), held as (
    select r.version_key from dispatch d join dag_run r on r.run_key = d.run_key where d.worker_id = %(service_id)s
    union all
    select c.version_key from dispatch d join callback c on c.run_key = d.run_key where d.worker_id = %(service_id)s
    union all
    select r.version_key from deferral w join dag_run r on r.run_key = w.run_key where w.triggerer_id = %(service_id)s
)
select exists (select from held join version on version.version_key = held.version_key) as in_hand,
       array(select version_key from version) as version_keys,
       array(select distinct bundle from version where bundle is not null) as bundles
