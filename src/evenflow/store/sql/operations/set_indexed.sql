-- The counters of single map indexes of a run as its task instances have them; there are no others.
with given as materialized (
    select *
    from unnest(%(tasks)s::int[], %(maps)s::int[], %(total)s::int[], %(success)s::int[], %(failed)s::int[], %(skipped)s::int[])
         as c (task_index, map_index, total, success, failed, skipped)
), gone as (
    delete from upstream_counter u
    where u.run_key = %(run_key)s and u.map_index >= 0
      and (u.task_index, u.map_index) not in (select g.task_index, g.map_index from given g)
)
insert into upstream_counter (run_key, task_index, map_index, total, success, failed, skipped)
select %(run_key)s, task_index, map_index, total, success, failed, skipped from given
on conflict (run_key, task_index, map_index) do update
set total = excluded.total, success = excluded.success, failed = excluded.failed, skipped = excluded.skipped
