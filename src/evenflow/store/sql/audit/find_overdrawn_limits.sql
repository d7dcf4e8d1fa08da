-- Limits of which more is used than they have. Right after it was lowered a limit may be overdrawn, but not by what started since:
-- nothing starts while use is at capacity. What starts within a few seconds of it may have been decided before. A try that was lost
-- and sent again keeps its holds. Resumes of deferred tasks ask no limit: what they hold may be above it (R-ST1). What was released
-- and no round has folded yet is not used any more.
select concat_ws(' ', l.kind, nullif(l.name, ''), 'of run ' || nullif(l.run_key, 0)) as object, l.used || ' used' as found,
       'at most ' || l.capacity as expected
from concurrency_limit l
where l.used > l.capacity
  and l.used - coalesce((select sum(w.released) from wake w where w.limit_id = l.limit_id), 0) > l.capacity + coalesce((
      select sum(case when d.holds[1] = l.limit_id then d.pool_slots else 1 end)
      from dispatch d
      where d.class = 0 and l.limit_id = any(d.holds)), 0)
  and (l.lowered_at is null
       or exists (
           select from dispatch d
           join task_instance t using (run_key, task_index, map_index)
           where l.limit_id = any(d.holds) and d.created_at > l.lowered_at + interval '5 seconds' and t.losses = 0 and d.class <> 0)
       or exists (
           select from dag_run r
           where r.slot_limit = l.limit_id and r.state = 'running' and r.started_at > l.lowered_at + interval '5 seconds'))
limit %(most)s
