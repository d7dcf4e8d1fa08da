-- What branches of this run have decided, as long as the decision stands: until the branch is cleared.
select d.task_index, d.map_index, d.skipped
from branch_decision d
join task_instance t using (run_key, task_index, map_index)
where d.run_key = %(run_key)s and t.state = 'success'
order by d.task_index, d.map_index
