-- Queued runs become running.
update dag_run r set state = 'running', started_at = now(), unfinished = c.unfinished, slot_limit = nullif(c.slot_limit, 0)
from unnest(%(run_keys)s::bigint[], %(unfinished)s::int[], %(slots)s::bigint[]) as c (run_key, unfinished, slot_limit)
where r.run_key = c.run_key and r.state = 'queued'
