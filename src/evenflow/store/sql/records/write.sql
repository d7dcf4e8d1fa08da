-- What a running try says of its work; answers nothing when the try is over. What it has said already stays. The dispatch is kept until this
-- commits (KEY SHARE).
with current as (
    select run_key, task_index, map_index, epoch, try_number from dispatch where epoch = %(epoch)s for key share
), written as (
    insert into try_record (run_key, task_index, map_index, epoch, kind, try_number, value, send_at)
    select run_key, task_index, map_index, epoch, %(kind)s, try_number, %(value)s::jsonb, case when %(kind)s = 'lineage' then now() end
    from current
    on conflict do nothing
)
select epoch from current
