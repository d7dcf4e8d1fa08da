-- The lanes of DAGs that were unpaused open again; the round parks those that cannot start.
update lane l set parked_on = 0
from dag_run r
where r.run_key = l.run_key and r.dag_id = any(%(dag_ids)s) and r.state = 'running' and l.parked_on = -1
