-- The lanes of DAGs that were unpaused open again, and begin to wait; the round parks those that cannot start.
update lane l set parked_on = 0, since = now()
from dag_run r
where r.run_key = l.run_key and r.dag_id = any(%(dag_ids)s) and r.state = 'running' and l.parked_on = -1
