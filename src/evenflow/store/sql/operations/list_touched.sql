-- Which task instances of these runs, which are of one version, an operation would touch if it were applied now, run by run in the
-- order in which they are named: the first ones, and how many there are. No run is read behind those that are counted. A map index
-- of null means all instances. left_by: also what of a cancelled run never ran, which that has ended, as in operations/find_left.
-- Each is looked for by its key: with nested loops as without them, nothing is compared with all others.
with found as materialized (
    select r.run_id, r.version_key, t.task_index, t.map_index, t.state
    from unnest(%(run_keys)s::bigint[]) as o (run_key)
    cross join lateral (select run_id, version_key, cancelled_by is not null or interrupted as cancelled from dag_run
        where run_key = o.run_key offset 0) as r
    cross join lateral (
        select i.task_index, i.map_index, i.state
        from (
            select x.task_index, t.map_index, t.state
            from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
            cross join lateral (
                select map_index, state, ended_by = %(left_by)s or ended_by is null and try_number = tries_before as unbegun
                from task_instance
                where run_key = o.run_key and task_index = x.task_index
                  and map_index between coalesce(x.map_index, -1) and coalesce(x.map_index, 2147483647)
                offset 0
            ) as t
            where t.state = any(%(states)s::task_state[]) or r.cancelled and t.state = 'skipped' and t.unbegun
                and %(left_by)s::text is not null
            union all
            select x.task_index, i.map_index, m.virtual_state
            from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
            cross join lateral (select length, virtual_state, virtual_ended_by is null
                or virtual_ended_by = %(left_by)s as unbegun from mapped_task where run_key = o.run_key
                and task_index = x.task_index offset 0) as m
            cross join lateral generate_series(coalesce(x.map_index, 0),
                coalesce(least(x.map_index, m.length - 1), m.length - 1)) as i (map_index)
            left join lateral (
                select true as begun from task_instance
                where run_key = o.run_key and task_index = x.task_index and map_index = i.map_index
                offset 0
            ) as t on true
            where (m.virtual_state = any(%(states)s::task_state[]) or r.cancelled and m.virtual_state = 'skipped' and m.unbegun
                and %(left_by)s::text is not null) and t.begun is null
        ) as i
        order by i.task_index, i.map_index
        limit %(counted)s
    ) as t
    limit %(counted)s
), counts as (
    select state, count(*) as n, count(*) filter (where map_index >= 0) as mapped from found group by state
)
select f.run_id, k.task_id, f.map_index, f.state::text, (select sum(n)::int from counts) as total,
    (select sum(mapped)::int from counts) as mapped, (select jsonb_object_agg(state, n) from counts) as states
from (select * from found limit %(limit)s) as f
cross join lateral (select task_id from task where version_key = f.version_key and task_index = f.task_index offset 0) as k
