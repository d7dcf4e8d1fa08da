-- What schedulers that had not the executor's lock released, summed by limit, when the last of it was, and whether runs wait for
-- such a limit; resumes of deferred tasks took some again. Only the holder of the lock does this.
with taken as (delete from wake returning limit_id, released, at)
select limit_id, sum(released)::int as released,
    coalesce(extract(epoch from max(at) filter (where released >= 0)), 0)::float8 as at_s,
       exists (select from concurrency_limit l where l.limit_id = taken.limit_id and l.kind = 'dag_runs') as of_runs
from taken
group by limit_id
