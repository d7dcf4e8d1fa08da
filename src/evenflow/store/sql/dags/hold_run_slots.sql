-- The running runs of DAGs that begin to limit them hold the limit from now on, and release it when they end. Locked, so that one
-- that ends at this moment is not counted.
with running as (
    select r.run_key, l.limit_id
    from concurrency_limit l
    join dag_run r on r.dag_id = l.name and r.state = 'running' and r.slot_limit is distinct from l.limit_id
    where l.run_key = 0 and l.kind = 'dag_runs' and l.name = any(%(dag_ids)s::text[])
    for no key update of r
), holding as (
    update dag_run r set slot_limit = x.limit_id from running x where r.run_key = x.run_key
)
update concurrency_limit l set used = l.used + x.n
from (select limit_id, count(*)::int as n from running group by limit_id) as x
where l.limit_id = x.limit_id
