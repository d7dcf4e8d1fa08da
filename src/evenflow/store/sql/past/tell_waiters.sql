-- Tasks of locked runs of which something may have ended well: where all instances have, the runs that watch them are told, once.
-- The epoch says which counting of theirs it is about.
with watched as (
    select distinct w.run_key, w.task_index
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[]) as c (run_key, task_index)
    join past_watch w on w.run_key = c.run_key and w.task_index = c.task_index
), well as (
    select w.run_key, w.task_index
    from watched w
    where exists (select from task_instance t where t.run_key = w.run_key and t.task_index = w.task_index)
      and not exists (
          select from task_instance t
          where t.run_key = w.run_key and t.task_index = w.task_index and t.state not in ('success', 'skipped'))
      and not exists (
          select from mapped_task m
          where m.run_key = w.run_key and m.task_index = w.task_index and m.virtual_state not in ('success', 'skipped')
            and m.length > (select count(*) from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index))
), told as (
    delete from past_watch where ctid = any(array(
        select w.row from well
        cross join lateral (
            select ctid as row from past_watch where run_key = well.run_key and task_index = well.task_index offset 0
        ) as w))
    returning waiter_run, waiter_task
)
insert into report (run_key, kind, epoch, payload)
select t.waiter_run, 'past', r.clears, jsonb_build_object('task', t.waiter_task)
from told t
join dag_run r on r.run_key = t.waiter_run
