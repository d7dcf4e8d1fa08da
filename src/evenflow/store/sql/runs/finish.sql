-- Runs whose last task has finished. What they had put off is void, except deadlines: these hold again when a person clears the
-- run.
with ended as (
    update dag_run r set state = c.state, ended_at = now(), reason = c.reason
    from unnest(%(run_keys)s::bigint[], %(states)s::run_state[], %(reasons)s::text[]) as c (run_key, state, reason)
    where r.run_key = c.run_key and r.state in ('running', 'queued')
    returning r.run_key
), void as (
    delete from timer t using ended e where t.run_key = e.run_key and t.kind <> 'deadline'
)
select run_key from ended
