-- As list_tasks, of one state. Untouched instances of mapped tasks are spans between rows; a row is a span of one. No index knows
-- the states, which change with every move, so a page costs the rows from its place to its last one, but no instance that has none.
with run as materialized (
    select run_key, version_key from dag_run where run_key = %(run_key)s
), place as materialized (
    select coalesce((%(after)s::jsonb ->> 0)::bigint, -1) as task_index, coalesce((%(after)s::jsonb ->> 1)::bigint, -1) as map_index
), asked as materialized (
    select k.task_index
    from run
    join task k on k.version_key = run.version_key and (%(task_id)s::text is null or k.task_id = %(task_id)s)
    where k.task_index >= (select task_index from place)
), mapped as materialized (
    select m.run_key, m.task_index, m.length
    from mapped_task m
    join asked using (task_index)
    where m.run_key = %(run_key)s and m.virtual_state = %(state)s::task_state
), span as (
    (select task_index, map_index as begin, map_index + 1 as past
     from task_instance
     where run_key = %(run_key)s and state = %(state)s::task_state
       and (%(task_id)s::text is null or task_index = (select task_index from asked))
       and (task_index, map_index) > (select task_index, map_index from place)
     order by task_index, map_index
     limit %(limit)s)
    union all
    select m.task_index, t.begin, t.map_index
    from mapped m
    cross join lateral (
        select map_index, lag(map_index, 1, -1) over (order by map_index) + 1 as begin
        from task_instance
        where run_key = m.run_key and task_index = m.task_index and map_index >= 0
    ) as t
    where t.begin < t.map_index
    union all
    select m.task_index, coalesce(t.map_index, -1) + 1, m.length
    from mapped m
    left join lateral (
        select map_index
        from task_instance
        where run_key = m.run_key and task_index = m.task_index and map_index >= 0
        order by map_index desc
        limit 1
    ) as t on true
    where coalesce(t.map_index, -1) + 1 < m.length
    union all
    select a.task_index, -1, 0
    from asked a
    where %(state)s::task_state = 'none'
      and not exists (select from task_instance t where t.run_key = %(run_key)s and t.task_index = a.task_index)
      and not exists (select from mapped_task m where m.run_key = %(run_key)s and m.task_index = a.task_index)
), left_over as (
    select s.task_index, case when s.task_index = p.task_index then greatest(s.begin, p.map_index + 1) else s.begin end as begin,
        s.past
    from span s
    cross join place p
), placed as (
    select task_index, begin, past, sum(past - begin) over (order by task_index, begin) - (past - begin) as first
    from left_over
    where begin < past
), page as materialized (
    select p.task_index, n as map_index
    from placed p
    cross join generate_series(p.begin::int, (least(p.past, p.begin + %(limit)s - p.first) - 1)::int) as n
    where p.first < %(limit)s
)
select jsonb_build_array(w.task_index, w.map_index) as place, k.task_id, k.operator, w.map_index,
    %(state)s::task_state::text as state, {{task_summary}}
from page w
cross join run
{{rows_of_instance}}
order by w.task_index, w.map_index
