-- The lanes of a run that is cancelled, with their ready tasks; their limits are woken for the lanes behind them.
with gone as (
    delete from lane where run_key = %(run_key)s returning lane_id, class_id, locals
), ready as (
    delete from ready_task using gone where ready_task.lane_id = gone.lane_id
)
select unnest(locals) as limit_id from gone
union
select n.task_limit from gone join limit_class n using (class_id) where n.task_limit is not null
