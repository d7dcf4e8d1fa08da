-- Tries that are known to come within this number of seconds, by queue: tasks that are to be tried again or rescheduled then, and
-- waits for a trigger that are given up then. Timers of tasks that have moved on since are void. Counts up to a number, the next
-- ones first; specs are read once for each version.
with due as materialized (
    select run_key, task_index, map_index, epoch
    from timer
    where not held and due_at <= now() + make_interval(secs => %(ahead_s)s) and kind in ('retry', 'reschedule', 'trigger_timeout')
    order by due_at
    limit %(most)s
), coming as materialized (
    select r.version_key, d.task_index, count(*)::int as tries
    from due d
    join task_instance i using (run_key, task_index, map_index, epoch)
    join dag_run r using (run_key)
    where i.state in ('up_for_retry', 'up_for_reschedule', 'deferred') and r.state = 'running'
    group by r.version_key, d.task_index
)
select coalesce(v.spec -> 'tasks' -> c.task_index ->> 'queue', 'default') as queue, sum(c.tries)::int as tries
from coming c
join dag_version v using (version_key)
group by 1
