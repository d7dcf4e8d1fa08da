-- What people want to remember of a run.
update dag_run set note = %(note)s where run_key = %(run_key)s
