-- What a running try says of its work, or the trigger that it waits for; answers nothing when the try is over. What it has said
-- already stays, but for the figures of stages, which grow, for links, which come one by one, and for what a client elsewhere has
-- said of its end before that. The dispatch is kept until this commits (KEY SHARE).
with running as (
    {{current_try}}
), current as (
    select run_key, task_index, map_index, epoch, try_number from running
    union all
    select f.run_key, f.task_index, f.map_index, f.epoch, %(try_number)s
    from deferral f
    where f.run_key = %(run_key)s and f.task_index = %(task_index)s and f.map_index = %(map_index)s and f.epoch = %(epoch)s
), written as (
    insert into try_record (run_key, task_index, map_index, epoch, kind, try_number, value, send_at)
    select run_key, task_index, map_index, epoch, %(kind)s, try_number, %(value)s::jsonb, case
        when %(kind)s = 'lineage' then now() end
    from current
    on conflict (run_key, task_index, map_index, epoch, kind)
    do update set at = excluded.at,
                  value = case when excluded.kind = 'links' then try_record.value || excluded.value else excluded.value end
    where excluded.kind in ('spark_stages', 'draft')
       or excluded.kind = 'links' and (select count(*) from jsonb_object_keys(try_record.value)) < %(most_links)s
)
select epoch from current
