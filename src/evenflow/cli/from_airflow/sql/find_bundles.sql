-- Fails before Airflow 3, which has no bundles of DAGs.
select count(*) as bundles from dag_bundle
