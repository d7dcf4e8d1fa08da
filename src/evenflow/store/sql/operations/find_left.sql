-- The instances of a cancelled run that never ran: they were skipped before they began a try, but not by a person or by a branch.
-- None for a run that has changed since the cancel.
select t.task_index, t.map_index
from dag_run r
join task_instance t using (run_key)
where r.run_key = %(run_key)s and (r.cancelled_by is not null or r.interrupted) and t.state = 'skipped'
  and (t.ended_by = %(cancel)s or t.ended_by is null and t.try_number = t.tries_before)
union all
select m.task_index, i.map_index
from dag_run r
join mapped_task m using (run_key)
cross join lateral generate_series(0, m.length - 1) as i (map_index)
where r.run_key = %(run_key)s and (r.cancelled_by is not null or r.interrupted) and m.virtual_state = 'skipped'
  and (m.virtual_ended_by is null or m.virtual_ended_by = %(cancel)s)
  and not exists (
      select from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index and t.map_index = i.map_index)
