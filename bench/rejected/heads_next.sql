-- The next lanes of a limit class in order, blocked or not, with the room that each of their local limits has.
select -l.run_priority as run_rank, -l.priority as rank, l.run_after, l.lane_id, l.ready, l.locals, f.free
from (
    select * from lane
    where class_id = %(class_id)s
      and (-run_priority, -priority, run_after, lane_id) > (%(run_rank)s::int, %(rank)s::int, %(run_after)s::timestamptz, %(lane_id)s::bigint)
    order by -run_priority, -priority, run_after, lane_id
    limit %(page)s
) as l
cross join lateral (
    select coalesce(array_agg(c.capacity - c.used order by k.n), '{}') as free
    from unnest(l.locals) with ordinality as k (limit_id, n)
    join concurrency_limit c using (limit_id)
) as f
where l.ready > 0
order by -l.run_priority, -l.priority, l.run_after, l.lane_id
