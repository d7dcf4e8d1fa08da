-- Some runs of a DAG, live ones first: they are what is in the way.
select run_key, run_id, state::text from dag_run where dag_id = %(dag_id)s order by state in ('success', 'failed'), run_key limit %(limit)s
