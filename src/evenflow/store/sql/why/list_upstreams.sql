-- Which of these upstreams of a task have not finished, in the order of the DAG, and how many in all. Of a mapped one its instances
-- are counted by state, virtual ones included: all of them where the map index is null, else that one.
select k.task_id, a.map_index, s.missing, s.total, s.states, count(*) over ()::int as upstreams
from unnest(%(tasks)s::int[], %(maps)s::int[]) as a (task_index, map_index)
join dag_run r on r.run_key = %(run_key)s
join task k on k.version_key = r.version_key and k.task_index = a.task_index
cross join lateral (
    select coalesce(sum(n) filter (where state not in {{finished}}), 0)::int as missing,
           sum(n)::int as total, jsonb_object_agg(state, n) as states
    from (
        select state, sum(n)::int as n
        from (
            select t.state, count(*) as n
            from task_instance t
            where t.run_key = r.run_key and t.task_index = k.task_index and (a.map_index is null or t.map_index = a.map_index)
            group by t.state
            union all
            select m.virtual_state, case when a.map_index is null then m.length else 1 end - (
                select count(*)
                from task_instance t
                where t.run_key = r.run_key and t.task_index = k.task_index and t.map_index >= 0
                  and (a.map_index is null or t.map_index = a.map_index)
            )
            from mapped_task m
            where m.run_key = r.run_key and m.task_index = k.task_index
        ) as found
        group by state
        having sum(n) > 0
    ) as counted
) as s
where s.missing > 0
order by k.task_index
limit %(named)s
