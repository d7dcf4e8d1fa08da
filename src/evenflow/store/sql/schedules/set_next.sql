-- When the next scheduled runs of these DAGs are due, and up to where they are scheduled: forward, never back. They are locked.
update dag d
set next_run_at = c.next_run_at, next_logical = c.next_logical,
    last_logical = greatest(d.last_logical, c.last_logical), last_interval_end = greatest(d.last_interval_end, c.last_interval_end)
from unnest(%(dag_ids)s::text[], %(next_run_ats)s::timestamptz[], %(next_logicals)s::timestamptz[], %(last_logicals)s::timestamptz[],
            %(last_interval_ends)s::timestamptz[]) as c (dag_id, next_run_at, next_logical, last_logical, last_interval_end)
where d.dag_id = c.dag_id
