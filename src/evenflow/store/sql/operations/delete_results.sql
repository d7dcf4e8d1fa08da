-- What cleared task instances left for others, for people and for their next tries: results, templates as they became, decisions of
-- branches, what they stored once. A map index of null means all instances.
with cleared as materialized (
    select x.task_index, x.map_index
    from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
    where exists (
        select from task_instance t
        where t.run_key = %(run_key)s and t.task_index = x.task_index and t.state = 'none'
          and (x.map_index is null or t.map_index = x.map_index))
), decisions as (
    delete from branch_decision d using cleared c
    where d.run_key = %(run_key)s and d.task_index = c.task_index and (c.map_index is null or d.map_index = c.map_index)
), templates as (
    delete from rendered r using cleared c
    where r.run_key = %(run_key)s and r.task_index = c.task_index and (c.map_index is null or r.map_index = c.map_index)
), once as (
    delete from once_value o using cleared c
    where o.run_key = %(run_key)s and o.task_index = c.task_index and (c.map_index is null or o.map_index = c.map_index)
)
delete from xcom v using cleared c
where v.run_key = %(run_key)s and v.task_index = c.task_index and (c.map_index is null or v.map_index = c.map_index)
  and exists (
      select from task_instance t
      where t.run_key = v.run_key and t.task_index = v.task_index and t.map_index in (v.map_index, -1) and t.state = 'none')
