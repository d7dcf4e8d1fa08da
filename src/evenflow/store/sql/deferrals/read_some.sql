-- These task instances as they wait or have resumed, under the locks of their runs, with all that they hold again when they resume,
-- in the order of a dispatch. direct: whether resumes go straight back to workers.
select f.run_key, f.task_index, f.map_index, f.epoch, f.trigger, f.purpose, f.holds, f.pool_slots, f.retake, f.retake_slots,
       array(
           select l.limit_id
           from unnest(f.holds || f.retake) as h (limit_id)
           join concurrency_limit l using (limit_id)
           order by l.kind = 'run', l.kind
       ) as all_holds,
       extract(epoch from f.ready_at)::float8 as ready_at_s, extract(epoch from now() - f.deferred_at)::float8 as waited_s,
           t.state::text,
       t.epoch as current_epoch, t.try_number, t.tries_before,
           coalesce((select value = 'true' from setting where name = 'direct_resume'), true) as direct
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[]) as k (run_key, task_index, map_index)
join deferral f using (run_key, task_index, map_index)
join task_instance t using (run_key, task_index, map_index)
