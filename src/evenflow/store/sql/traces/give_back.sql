-- Ends of runs that this API server took and has not told.
update trace_due set due_at = now()
where (run_key, ended_at) in (select * from unnest(%(run_keys)s::bigint[], %(ended)s::timestamptz[]))
