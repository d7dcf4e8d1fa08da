-- Task instances of a run in the order of its DAG, the untouched ones of mapped tasks and of runs not yet begun among them. Where a
-- page begins is computed: a task stands at its index, moved on by the instances of the mapped tasks before it. So a page costs the
-- same wherever it is.
with run as materialized (
    select run_key, version_key from dag_run where run_key = %(run_key)s
), mapped as materialized (
    select task_index, length, virtual_state, (task_index + sum(length - 1) over w - (length - 1))::int as first,
           (sum(length - 1) over w)::int as shift, lead(task_index, 1, 2147483647) over (order by task_index) as next_mapped
    from mapped_task
    where run_key = %(run_key)s
    window w as (order by task_index)
), stretch as (  -- of tasks that are one instance each: those before the first mapped task, and those after each
    select -1 as after, 0 as shift, coalesce(min(task_index), 2147483647) as until from mapped
    union all
    select task_index, shift, next_mapped from mapped
), part as (  -- where what is asked for stands
    select 0 as first, 2147483647 as length where %(task_id)s::text is null
    union all
    select coalesce(m.first, k.task_index + s.shift), coalesce(m.length, 1)
    from run
    join task k on k.version_key = run.version_key and k.task_id = %(task_id)s
    join stretch s on k.task_index > s.after and k.task_index <= s.until
    left join mapped m on m.task_index = k.task_index
), behind as (  -- where what is next to the place stands
    select coalesce(m.first + least(a.map_index, m.length - 1), a.task_index + s.shift) + 1 as first
    from (select (%(after)s::jsonb ->> 0)::bigint as task_index, (%(after)s::jsonb ->> 1)::bigint as map_index) as a
    join stretch s on a.task_index > s.after and a.task_index <= s.until
    left join mapped m on m.task_index = a.task_index
), page as materialized (
    select b.begin, least(p.first::bigint + p.length, b.begin + %(limit)s) as past
    from part p
    cross join lateral (select greatest(p.first::bigint, (select first from behind)) as begin) as b
), wanted as materialized (
    select k.task_index, -1 as map_index, 'none'::task_state as virtual_state
    from page, stretch s, run
    cross join lateral (
        select task_index from task
        where version_key = run.version_key
          and task_index >= greatest(s.after + 1, page.begin - s.shift) and task_index < least(s.until, page.past - s.shift)
    ) as k
    union all
    select m.task_index, n, m.virtual_state
    from page, mapped m,
        generate_series(greatest(0, page.begin - m.first)::int, (least(m.length, page.past - m.first) - 1)::int) as n
)
select jsonb_build_array(w.task_index, w.map_index) as place, k.task_id, k.operator, w.map_index,
    coalesce(t.state, w.virtual_state)::text as state,
    {{task_summary}}
from wanted w
cross join run
{{rows_of_instance}}
order by w.task_index, w.map_index
