-- Lanes and their ready tasks: open, parked on a limit, or of a paused DAG.
select count(*) filter (where parked_on = 0)::int as open, count(*) filter (where parked_on > 0)::int as parked,
       count(*) filter (where parked_on < 0)::int as paused, coalesce(sum(ready), 0)::int as ready
from lane
