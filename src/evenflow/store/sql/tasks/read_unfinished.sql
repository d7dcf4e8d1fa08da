-- Task instances of a run that are in these states, those of spared tasks left out, the last tasks first and up to a limit, with
-- the worker of their dispatch, and whether they have deferred in their try; unless all are asked for, those left out that are
-- being killed or cleaned up after already. For people's intents, never in the hot path. Dispatches are locked NO KEY UPDATE, and
-- read as locked: as in operations/find_live.
select t.task_index, t.map_index, t.state::text, t.epoch, t.try_number, d.worker_id, d.holds, d.pool_slots,
       f.has_deferred is not null as has_deferred,
       f.has_deferred is not null or t.poking_since is not null
           or t.try_number > t.tries_before + case when t.state = 'queued' then 1 else 0 end as has_run,
       f.purpose
from task_instance t
left join lateral (
    select worker_id, holds, pool_slots, kill from dispatch where t.state in ('queued', 'running')
        and epoch = t.epoch offset 0 for no key update
) as d on true
left join lateral (
    select true as has_deferred, purpose from deferral where run_key = t.run_key and task_index = t.task_index
        and map_index = t.map_index offset 0
) as f on true
where t.run_key = %(run_key)s and t.state = any(%(states)s::task_state[]) and t.task_index <> all(%(spared)s::int[])
  and (%(every)s or d.kill is not true and f.purpose is distinct from 'clean_up')
order by t.run_key desc, t.task_index desc, t.map_index desc
limit %(limit)s
