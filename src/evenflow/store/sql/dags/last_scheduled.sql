-- The logical date of the newest scheduled run.
select logical_date from dag_run where dag_id = %(dag_id)s and run_type = 'scheduled' order by run_key desc limit 1
