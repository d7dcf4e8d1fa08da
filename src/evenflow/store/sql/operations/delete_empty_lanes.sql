-- Lanes of this run that nothing is left of; answers the limits that lanes behind them may be parked on.
with gone as (
    delete from lane where run_key = %(run_key)s and ready = 0 returning class_id, locals
)
select unnest(locals) as limit_id from gone
union
select n.task_limit from gone join limit_class n using (class_id) where n.task_limit is not null
