-- When the next scheduled runs of these DAGs are due, up to where they are scheduled (forward, never back), and whether a processor
-- has to compute more runs. They are locked.
update dag d
set next_run_at = c.next_run_at, next_logical = c.next_logical, wants_forecast = c.wants_forecast,
    last_logical = greatest(d.last_logical, c.last_logical), last_interval_end = greatest(d.last_interval_end, c.last_interval_end)
from unnest(%(dag_ids)s::text[], %(next_run_ats)s::timestamptz[], %(next_logicals)s::timestamptz[],
    %(last_logicals)s::timestamptz[],
            %(last_interval_ends)s::timestamptz[], %(wants_forecasts)s::boolean[])
     as c (dag_id, next_run_at, next_logical, last_logical, last_interval_end, wants_forecast)
where d.dag_id = c.dag_id
