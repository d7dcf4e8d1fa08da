-- Which run of a DAG has this logical date.
select run_id from dag_run where dag_id = %(dag_id)s and logical_date = %(logical_date)s
