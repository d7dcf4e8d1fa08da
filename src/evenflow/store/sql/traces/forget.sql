-- Ends of runs that are told, that are not sampled, or whose runs are gone.
delete from trace_due where (run_key, ended_at) in (select * from unnest(%(run_keys)s::bigint[], %(ended)s::timestamptz[]))
