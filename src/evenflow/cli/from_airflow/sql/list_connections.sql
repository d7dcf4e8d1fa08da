-- All connections. Airflow 3.0 has no column team_name, so no column is named.
select * from connection order by conn_id
