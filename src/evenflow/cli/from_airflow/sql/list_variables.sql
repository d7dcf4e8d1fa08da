-- All variables. Airflow 3.0 has no column team_name, so no column is named.
select * from variable order by key
