-- Capacities of pools and executors: each change that is still known, and what they are now.
select kind, name, at, capacity, true as is_change from evenflow_reporting_v1.limit_changes where at < %(until)s
union all
select kind, name, %(until)s::timestamptz, capacity, false from evenflow_reporting_v1.limits where kind in ('pool', 'executor')
order by kind, name, at, is_change
