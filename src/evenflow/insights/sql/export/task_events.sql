-- What some transactions wrote of task instances.
select run_key, task_index, map_index, at, xact, epoch, try_number, event, state, detail::text as detail
from evenflow_reporting_v1.task_events
where xact >= %(first)s and xact < %(past)s
order by xact, at, run_key, task_index, map_index, epoch
