-- Limits by the hours that one more of each would have saved, all days together.
select cause, limit_name, sum(saved_hours) as saved_hours, sum(wait_hours) as wait_hours
from evenflow_reporting_v1.mart_advice
where more = 1
group by cause, limit_name
order by saved_hours desc, limit_name
limit %(most)s
