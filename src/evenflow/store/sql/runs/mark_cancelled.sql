-- From now on nothing of this run starts.
update dag_run set cancelled_by = %(actor)s where run_key = %(run_key)s
