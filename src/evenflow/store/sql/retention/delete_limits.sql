-- Those of these limits that no version knows, with the limit classes that have them. The lock of their DAGs comes first, in a
-- statement of its own: what was stored before is seen only by a snapshot that is younger than the lock.
with unused as materialized (
    select limit_id from unused_limit where limit_id = any(%(limits)s::bigint[])
), limit_classes as (
    delete from limit_class n using unused u where n.task_limit = u.limit_id
)
delete from concurrency_limit l using unused u where l.limit_id = u.limit_id
