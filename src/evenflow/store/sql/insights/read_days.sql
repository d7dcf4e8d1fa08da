-- By day what all DAGs together waited for, ran and took, and how late their runs began: of the marts that the history pipeline has
-- returned.
with waited as (
    select day, jsonb_object_agg(cause, seconds) as seconds
    from (select day, cause, sum(seconds) as seconds from evenflow_reporting_v1.mart_wait_by_cause group by day, cause) as by_cause
    group by day
), lag as (
    select day, sum(runs)::bigint as runs, sum(tries)::bigint as tries, max(run_p99_s) as run_p99_s, max(wait_p99_s) as wait_p99_s
    from evenflow_reporting_v1.mart_lags
    group by day
), cost as (
    select day, sum(slot_hours) as slot_hours, sum(wait_hours) as wait_hours from evenflow_reporting_v1.mart_costs group by day
)
select to_char(day, 'YYYY-MM-DD') as day, coalesce(runs, 0) as runs, coalesce(tries, 0) as tries, run_p99_s, wait_p99_s,
       coalesce(slot_hours, 0) as slot_hours, coalesce(wait_hours, 0) as wait_hours, coalesce(seconds, '{}') as seconds
from lag
full join waited using (day)
full join cost using (day)
order by day desc
limit %(most)s
