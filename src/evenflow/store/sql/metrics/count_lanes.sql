-- Lanes and their ready tasks: open, parked on a limit, of a paused DAG or in quarantine. Counting ends at a limit: a look at the
-- backlog must not cost more the longer it is.
select count(*) filter (where parked_on = 0 or parked_on = -2)::int as open, count(*) filter (where parked_on > 0)::int as parked,
       count(*) filter (where parked_on = -1)::int as paused, coalesce(sum(ready), 0)::bigint as ready
from (select parked_on, ready from lane limit %(most)s) as counted
