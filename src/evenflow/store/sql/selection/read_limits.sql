-- Room on these limits, a pool's patience, and since when there is room. Only the holder of the executor's lock changes use, so it
-- reads without locking. If so asked, also on max_active_tasks of the runs that inbox/lock_runs has locked.
select limit_id, capacity - used as free, patience_s, extract(epoch from released_at)::float8 as released_at_s, run_key
from concurrency_limit
where limit_id = any(%(limits)s::bigint[])
union all
select limit_id, capacity - used, patience_s, extract(epoch from released_at)::float8, run_key
from concurrency_limit
where %(of_locked)s and run_key = any(nullif(current_setting('evenflow.runs', true), '')::bigint[]) and kind = 'run' and name = ''
