-- Queued runs become running. One that was cleared knows what of it has not finished.
update dag_run r set state = 'running', started_at = now(), 
    unfinished = case when r.clears = 0 then c.unfinished else r.unfinished end, slot_limit = nullif(c.slot_limit, 0)
from unnest(%(run_keys)s::bigint[], %(unfinished)s::int[], %(slots)s::bigint[]) as c (run_key, unfinished, slot_limit)
where r.run_key = c.run_key and r.state = 'queued'
