-- Every task instance of a run that has not finished, with the worker of its dispatch. For operators' intents, never in the hot path.
select t.task_index, t.map_index, t.state::text, t.epoch, t.try_number, d.worker_id, d.holds, d.pool_slots
from task_instance t
left join dispatch d on d.epoch = t.epoch
where t.run_key = %(run_key)s and t.state in ('none', 'scheduled', 'queued', 'running', 'deferred', 'up_for_retry', 'up_for_reschedule')
