-- Task instances of these runs have finished; answers how the runs stand. Whether others of its DAG wait is asked for a run that
-- ends and leaves them room. There is no join, which would read all runs for each of these where the planner thinks that there are
-- few.
update dag_run r
set unfinished = unfinished - (%(finished)s::int[])[array_position(%(run_keys)s::bigint[], run_key)],
    failed_leaves = failed_leaves + (%(failed_leaves)s::int[])[array_position(%(run_keys)s::bigint[], run_key)]
where run_key = any(%(run_keys)s::bigint[])
returning r.run_key, r.unfinished, r.failed_leaves, r.interrupted, r.cancelled_by, r.slot_limit,
          r.unfinished <= 0 and r.slot_limit is not null
          and exists (select from dag_run q where q.dag_id = r.dag_id and q.state = 'queued') as others_wait
