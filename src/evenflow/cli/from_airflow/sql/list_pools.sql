-- All pools. Airflow 3.0 has no column team_name, so no column is named.
select * from slot_pool order by pool
