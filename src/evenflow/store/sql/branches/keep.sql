-- What branches have decided; the decision of an earlier try of the same task instance goes.
with given as materialized (
    select run_key, task_index, map_index, skipped::int[]
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(skipped)s::text[]) as d (run_key, task_index,
        map_index, skipped)
), branched as (
    update dag_run r set branched = true from given d where r.run_key = d.run_key and not r.branched
)
insert into branch_decision (run_key, task_index, map_index, skipped)
select * from given
on conflict (run_key, task_index, map_index) do update set skipped = excluded.skipped
