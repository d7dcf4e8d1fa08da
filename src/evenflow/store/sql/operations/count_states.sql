-- How many task instances of these runs are in each state, and how many of those are of mapped tasks, those without a row included.
select state, sum(n)::int as n, coalesce(sum(n) filter (where is_mapped), 0)::int as mapped
from (
    select state::text, map_index >= 0 as is_mapped, count(*) as n
    from task_instance where run_key = any(%(run_keys)s::bigint[]) group by state, map_index >= 0
    union all
    select m.virtual_state::text, true, m.length - (
        select count(*) from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index and t.map_index >= 0)
    from mapped_task m where m.run_key = any(%(run_keys)s::bigint[])
    union all
    select 'none', false, (
        select count(*) from task k
        where k.version_key = r.version_key
          and not exists (select from task_instance t where t.run_key = r.run_key and t.task_index = k.task_index)
          and not exists (select from mapped_task m where m.run_key = r.run_key and m.task_index = k.task_index))
    from dag_run r where r.run_key = any(%(run_keys)s::bigint[])
) as counted
group by state
having sum(n) > 0
