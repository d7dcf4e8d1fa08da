-- Some limits that no version knows, after a name, with the lock that keeps versions of their DAGs from being stored: only those
-- whose lock is free.
select u.kind::text, u.name, u.limit_id, pg_try_advisory_xact_lock(1145128264, hashtext(u.dag_id)) as locked
from (
    select * from unused_limit
    where (kind, name) > (%(kind)s::limit_kind, %(name)s::text)
    order by kind, name
    limit %(limit)s
) as u
