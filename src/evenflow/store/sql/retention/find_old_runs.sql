-- The oldest runs that ended before an instant. Keys ascend with time, so only what is older than that is looked at: live runs and those that
-- ended later are few among it.
select run_key
from dag_run
where run_key < %(before_key)s and state in ('success', 'failed') and ended_at < %(before)s
order by run_key
limit %(limit)s
