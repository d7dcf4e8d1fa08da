-- What branches have decided; the decision of an earlier try of the same task instance goes.
insert into branch_decision (run_key, task_index, map_index, skipped)
select run_key, task_index, map_index, skipped::int[]
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(skipped)s::text[]) as d (run_key, task_index, map_index, skipped)
on conflict (run_key, task_index, map_index) do update set skipped = excluded.skipped
