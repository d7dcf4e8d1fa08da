-- What some transactions wrote of runs.
select run_key, at, xact, event, state, actor, detail::text as detail
from evenflow_reporting_v1.run_events
where xact >= %(first)s and xact < %(past)s
order by xact, at, run_key
