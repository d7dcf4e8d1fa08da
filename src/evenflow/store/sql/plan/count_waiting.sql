-- Ready tasks by what their lane is parked on and by limit class, among the first lanes in the order of the index; those of runs in
-- quarantine left out.
select parked_on, class_id, sum(ready)::int as tasks, count(*)::int as lanes
from (
    select parked_on, class_id, ready
    from lane
    where parked_on <> -3
      and (%(scope)s::jsonb is null or exists (
          select from dag_run r where r.run_key = lane.run_key and r.dag_id in (select dags_in_scope(%(scope)s::jsonb))))
    order by parked_on, base_id, order_key
    limit %(lanes)s
) as l
group by parked_on, class_id
order by parked_on, class_id
limit %(groups)s
