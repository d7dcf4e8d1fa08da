-- How many runs a DAG has, all of them: a range of an index that is read alone, some 0.1 s for a million.
select count(*)::int from dag_run where dag_id = %(dag_id)s
