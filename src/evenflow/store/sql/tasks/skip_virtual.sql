-- The virtual instances of a cancelled run are skipped all at once, except those of spared tasks; answers how many they were. Those
-- that people have just removed do not count as instances any longer, so none of them is spared.
with pending as (
    select m.run_key, m.task_index, m.length - count(t.map_index)::int as instances
    from mapped_task m
    left join task_instance t on t.run_key = m.run_key and t.task_index = m.task_index and t.map_index >= 0
    where m.run_key = %(run_key)s and m.virtual_state = any(%(states)s::task_state[])
      and (m.virtual_state = %(removed)s::task_state or m.task_index <> all(%(spared)s::int[]))
    group by m.run_key, m.task_index, m.length
)
update mapped_task m set virtual_state = %(state)s::task_state, virtual_reason = %(reason)s, virtual_ended_by = %(ended_by)s
from pending p
where m.run_key = p.run_key and m.task_index = p.task_index
returning p.task_index, p.instances
