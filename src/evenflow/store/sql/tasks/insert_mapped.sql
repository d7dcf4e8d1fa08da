-- Mapped tasks that have just been expanded.
insert into mapped_task (run_key, task_index, length)
select * from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(lengths)s::int[])
