-- Run and tasks of these lanes: of each "counts" tasks, after "skips" others, in the order in which they start. Only the first
-- tasks of a lane are looked at.
select c.place, r.dag_id, r.run_id, t.task_id, t.count
from unnest(%(lanes)s::bigint[], %(counts)s::int[], %(skips)s::int[]) with ordinality as c (lane_id, count, skip, place)
join lane l using (lane_id)
join dag_run r on r.run_key = l.run_key and (%(scope)s::jsonb is null or r.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
cross join lateral (
    select k.task_index, k.task_id, count(*)::int as count
    from (
        select x.task_index from ready_task x
        where x.lane_id = l.lane_id
        order by x.task_index, x.map_index
        limit least(c.count, %(read)s) offset c.skip
    ) as first
    join task k on k.version_key = r.version_key and k.task_index = first.task_index
    where l.task_index is null
    group by k.task_index, k.task_id
    union all
    select k.task_index, k.task_id, c.count from task k where k.version_key = r.version_key and k.task_index = l.task_index
    order by 1
    limit %(named)s
) as t
order by c.place, t.task_index
