-- Logs to delete, the oldest first, for the caller; other callers take them when they are not deleted after a while. Tells which of
-- them belong to a name that is in use again. SKIP LOCKED: another API server is just taking those.
update log_garbage g set at = now() + interval '10 minutes'
where (dag_id, run_id) in (
    select dag_id, run_id from log_garbage where at <= now() order by at limit %(limit)s for update skip locked)
returning g.dag_id, g.run_id,
          case when g.run_id = '' then exists (select from dag d where d.dag_id = g.dag_id)
               else exists (select from dag_run r where r.dag_id = g.dag_id and r.run_id = g.run_id) end as in_use
