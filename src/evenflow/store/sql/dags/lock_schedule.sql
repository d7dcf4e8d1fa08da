-- What was scheduled last of a DAG, since when it is known, which is now when it is new, its forecast, and what time it is. Locked,
-- so that no scheduler continues the schedule before the next run is set.
select d.last_logical, d.last_interval_end, coalesce(d.first_seen_at, now()), d.forecast::text, now()
from (select) as asked
left join (
    select last_logical, last_interval_end, first_seen_at, forecast from dag where dag_id = %(dag_id)s for no key update
) as d on true
