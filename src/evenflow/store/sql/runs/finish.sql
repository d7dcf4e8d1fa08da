-- Runs whose last task has finished.
update dag_run r set state = c.state, ended_at = now(), reason = c.reason
from unnest(%(run_keys)s::bigint[], %(states)s::run_state[], %(reasons)s::text[]) as c (run_key, state, reason)
where r.run_key = c.run_key and r.state in ('running', 'queued')
returning r.run_key
