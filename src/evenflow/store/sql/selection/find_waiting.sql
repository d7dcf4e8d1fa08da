-- Which of these limits tasks wait for: lanes that are parked on them, open lanes of limit classes that have them as task or pool
-- limit (of a pool by base, because one pool may have thousands of limit classes), executors that are full. Also pools that may
-- have to be kept for others, and limits that resumes of deferred tasks have overdrawn, or may have: their released room may not be
-- taken. If so asked, max_active_tasks of the runs that inbox/lock_runs has locked are among these limits.
with given as materialized (
    select limit_id from unnest(%(limits)s::bigint[]) as g (limit_id)
    union all
    select limit_id
    from concurrency_limit
    where %(of_locked)s and run_key = any(nullif(current_setting('evenflow.runs', true), '')::bigint[]) and kind = 'run'
        and name = ''
)
select g.limit_id from given g cross join lateral (select from lane where parked_on = g.limit_id limit 1) as parked
union
select g.limit_id
from given g
join limit_class n on n.task_limit = g.limit_id
cross join lateral (select from lane where parked_on in (0, -2) and class_id = n.class_id limit 1) as open
union
select g.limit_id
from given g
join limit_class n on n.pool_limit = g.limit_id and n.task_limit is null
cross join lateral (select from lane where parked_on in (0, -2) and base_id = n.class_id limit 1) as open
union
select l.limit_id
from given g
join concurrency_limit l using (limit_id)
where l.kind = 'executor' and l.used >= l.capacity or l.patience_s is not null or l.used > l.capacity
union
select g.limit_id from given g join wake w using (limit_id) where w.released < 0
