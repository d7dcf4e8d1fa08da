-- What cleared task instances left for others, for people and for their next tries: results, templates as they became, decisions of
-- branches, what they stored once (but of what may still run outside), what people answered. A map index of null means all
-- instances. Deleted by ctid: nothing of what has no process is written.
with cleared as materialized (
    select x.task_index, x.map_index
    from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
    cross join lateral (
        select from task_instance
        where run_key = %(run_key)s and task_index = x.task_index and state = 'none'
          and map_index between coalesce(x.map_index, -1) and coalesce(x.map_index, 2147483647)
        limit 1
    ) as t
), decisions as (
    delete from branch_decision where ctid = any(array(
        select r.row from cleared c
        cross join lateral (
            select ctid as row from branch_decision
            where run_key = %(run_key)s and task_index = c.task_index
              and map_index between coalesce(c.map_index, -1) and coalesce(c.map_index, 2147483647)
            offset 0
        ) as r))
), templates as (
    delete from rendered where ctid = any(array(
        select r.row from cleared c
        cross join lateral (
            select ctid as row from rendered
            where run_key = %(run_key)s and task_index = c.task_index
              and map_index between coalesce(c.map_index, -1) and coalesce(c.map_index, 2147483647)
            offset 0
        ) as r))
), answers as (
    delete from approval where ctid = any(array(
        select r.row from cleared c
        cross join lateral (
            select ctid as row from approval
            where run_key = %(run_key)s and task_index = c.task_index
              and map_index between coalesce(c.map_index, -1) and coalesce(c.map_index, 2147483647)
            offset 0
        ) as r))
), once as (
    delete from once_value where ctid = any(array(
        select r.row from cleared c
        cross join lateral (
            select ctid as row from once_value
            where run_key = %(run_key)s and task_index = c.task_index and not outside
              and map_index between coalesce(c.map_index, -1) and coalesce(c.map_index, 2147483647)
            offset 0
        ) as r))
)
delete from xcom where ctid = any(array(
    select r.row from cleared c
    cross join lateral (
        select ctid as row from xcom
        where run_key = %(run_key)s and task_index = c.task_index
          and map_index between coalesce(c.map_index, -1) and coalesce(c.map_index, 2147483647)
        offset 0
    ) as r))
