-- Every task instance of a run that has not finished, with the worker of its dispatch, and whether it has deferred in its try. For operators' intents, never in the hot path.
-- Dispatches are locked NO KEY UPDATE, and read as locked: as in operations/find_live.
with tries as materialized (
    select d.epoch, d.worker_id, d.holds, d.pool_slots
    from task_instance t
    join dispatch d on d.epoch = t.epoch
    where t.run_key = %(run_key)s and t.state in ('queued', 'running')
    for no key update of d
)
select t.task_index, t.map_index, t.state::text, t.epoch, t.try_number, d.worker_id, d.holds, d.pool_slots,
       f.run_key is not null as has_deferred, f.purpose
from task_instance t
left join tries d on d.epoch = t.epoch
left join deferral f on f.run_key = t.run_key and f.task_index = t.task_index and f.map_index = t.map_index
where t.run_key = %(run_key)s and t.state in ('none', 'scheduled', 'queued', 'running', 'deferred', 'up_for_retry', 'up_for_reschedule')
