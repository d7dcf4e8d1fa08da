-- Limits that are worth raising, the worthiest first.
select cause, limit_name, more, saved_hours, wait_hours
from evenflow_reporting_v1.mart_worth_raising
order by worth desc, limit_name
limit %(most)s
