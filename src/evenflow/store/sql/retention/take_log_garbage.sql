-- Logs that are to be deleted, the oldest first, for who takes them now: others take them when that has not deleted them after a while. It
-- is said which are of a name that is in use again. SKIP LOCKED: another API server is just taking those.
update log_garbage g set at = now() + interval '10 minutes'
where (dag_id, run_id) in (
    select dag_id, run_id from log_garbage where at <= now() order by at limit %(limit)s for update skip locked)
returning g.dag_id, g.run_id,
          case when g.run_id = '' then exists (select from dag d where d.dag_id = g.dag_id)
               else exists (select from dag_run r where r.dag_id = g.dag_id and r.run_id = g.run_id) end as in_use
