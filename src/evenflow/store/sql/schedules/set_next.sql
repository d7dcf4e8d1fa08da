-- When the next scheduled runs of these DAGs are due; they are locked.
update dag d set next_run_at = c.next_run_at, next_logical = c.next_logical
from unnest(%(dag_ids)s::text[], %(next_run_ats)s::timestamptz[], %(next_logicals)s::timestamptz[]) as c (dag_id, next_run_at, next_logical)
where d.dag_id = c.dag_id
