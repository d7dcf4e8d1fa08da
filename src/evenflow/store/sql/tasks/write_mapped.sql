-- Mapped tasks that have just been expanded, or whose virtual instances have just become ready or ended.
insert into mapped_task (run_key, task_index, length, virtual_state, tries_before)
select * from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(lengths)s::int[], %(virtual_states)s::task_state[],
    %(tries_before)s::smallint[])
on conflict (run_key, task_index) do update set virtual_state = excluded.virtual_state, virtual_reason = null,
    virtual_ended_by = null
