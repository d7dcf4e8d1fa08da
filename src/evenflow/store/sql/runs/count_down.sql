-- Task instances of these runs have finished; answers how the runs stand. Whether others of its DAG wait is asked for a run that ends and
-- leaves them room.
update dag_run r set unfinished = r.unfinished - c.finished, failed_leaves = r.failed_leaves + c.failed_leaves
from unnest(%(run_keys)s::bigint[], %(finished)s::int[], %(failed_leaves)s::int[]) as c (run_key, finished, failed_leaves)
where r.run_key = c.run_key
returning r.run_key, r.unfinished, r.failed_leaves, r.interrupted, r.cancelled_by, r.slot_limit,
          r.unfinished <= 0 and r.slot_limit is not null
          and exists (select from dag_run q where q.dag_id = r.dag_id and q.state = 'queued') as others_wait
