-- The best open lane of each limit class, up to a number of these, that has room for a task of it: what the next round starts or
-- parks, so it changes (its xmin does) or goes. A pool that keeps room for tasks of several slots has room only when it has that
-- for the largest. What is closed has none.
select n.class_id, l.lane_id, l.xmin::text as version, l.ready, r.dag_id, r.run_id, p.name as pool,
    p.capacity - p.used as pool_free,
       e.capacity - e.used as executor_free
from (select parked_on, class_id from occupied_class limit %(limit_classes)s) as o
join limit_class n using (class_id)
join concurrency_limit p on p.limit_id = n.pool_limit
join concurrency_limit e on e.limit_id = n.executor_limit
left join concurrency_limit t on t.limit_id = n.task_limit
cross join lateral (
    select lane_id, xmin, ready, run_key from lane
    where parked_on = o.parked_on and parked_on in (0, -2) and class_id = o.class_id
    order by order_key
    limit 1
) as l
join dag_run r on r.run_key = l.run_key
where p.capacity - p.used >= case when p.patience_s is null then n.weight
    else (select max(m.weight) from limit_class m where m.pool_limit = p.limit_id) end
  and e.capacity > e.used and (o.parked_on = -2 or t.limit_id is null or t.capacity > t.used)
  and not exists (
      select from service_state s
      where s.kind = 'pool' and s.name = p.name or s.kind = 'queue' and s.name = n.queue or s.kind = 'system'
          and s.state <> 'draining')
