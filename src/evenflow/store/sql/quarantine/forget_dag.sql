-- A new version of a DAG is tried.
delete from quarantine where object = %(dag_id)s and kind in ('schedule', 'assets')
