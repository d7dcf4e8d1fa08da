-- The upstreams of a task that have not finished, in the order of the DAG, and how many there are in all. Of a mapped one its instances
-- are counted by state, those without a row included.
select k.task_id, s.missing, s.total, s.states, count(*) over ()::int as upstreams
from dag_run r
join dag_version v on v.version_key = r.version_key
cross join lateral jsonb_array_elements_text(coalesce(v.spec -> 'tasks' -> %(task_index)s::int -> 'upstream', '[]')) as u (task_index)
join task k on k.version_key = r.version_key and k.task_index = u.task_index::int
cross join lateral (
    select coalesce(sum(n) filter (where state not in ('success', 'failed', 'skipped', 'upstream_failed', 'removed')), 0)::int as missing,
           sum(n)::int as total, jsonb_object_agg(state, n) as states
    from (
        select state, sum(n)::int as n
        from (
            select t.state, count(*) as n from task_instance t where t.run_key = r.run_key and t.task_index = k.task_index group by t.state
            union all
            select m.rest, m.length - (
                select count(*) from task_instance t where t.run_key = r.run_key and t.task_index = k.task_index and t.map_index >= 0
            )
            from mapped_task m
            where m.run_key = r.run_key and m.task_index = k.task_index
        ) as found
        group by state
        having sum(n) > 0
    ) as counted
) as s
where r.run_key = %(run_key)s and s.missing > 0
order by k.task_index
limit %(named)s
