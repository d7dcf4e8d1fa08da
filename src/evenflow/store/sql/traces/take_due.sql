-- Ends of runs for this API server to tell. Another one takes what it has not told in time: SKIP LOCKED, and a later moment.
with due as materialized (
    select run_key, ended_at from trace_due where due_at <= now() order by due_at limit %(limit)s for update skip locked
)
update trace_due t
set due_at = now() + make_interval(secs => %(again_s)s)
from due
left join dag_run r using (run_key)
where t.run_key = due.run_key and t.ended_at = due.ended_at
returning t.run_key, t.ended_at, r.traceparent
