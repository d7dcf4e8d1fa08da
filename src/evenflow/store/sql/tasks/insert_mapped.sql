-- Mapped tasks that have just been expanded, or whose instances without a row have just become ready or ended.
insert into mapped_task (run_key, task_index, length, rest, tries_before)
select * from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(lengths)s::int[], %(rests)s::task_state[], %(tries_before)s::smallint[])
on conflict (run_key, task_index) do update set rest = excluded.rest, rest_reason = null
