-- New runs with tasks that depend on the past: a gate for each of which something in the run before (scheduled or of a backfill, by
-- logical date) has not ended well, a watch for that, and word to that run that it is watched, should it end just now. Nothing of
-- the other run is locked. A task that the run before did not have is not waited for.
with asked as (
    select run_key, task_index, task_id
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(task_ids)s::text[]) as c (run_key, task_index, task_id)
), previous as (
    select r.run_key, p.run_key as past_run, p.version_key
    from (select distinct run_key from asked) as a
    join dag_run r using (run_key)
    cross join lateral (
        select q.run_key, q.version_key
        from dag_run q
        where q.dag_id = r.dag_id and q.logical_date < r.logical_date and q.run_type in ('scheduled', 'backfill')
        order by q.logical_date desc
        limit 1
    ) as p
), needed as (
    select distinct a.run_key, a.task_index, p.past_run, k.task_index as past_task
    from asked a
    join previous p using (run_key)
    join task k on k.version_key = p.version_key and k.task_id = a.task_id
), missing as (
    select n.* from needed n
    where not exists (select from task_instance t where t.run_key = n.past_run and t.task_index = n.past_task)
       or exists (
           select from task_instance t
           where t.run_key = n.past_run and t.task_index = n.past_task and t.state not in ('success', 'skipped'))
       or exists (
           select from mapped_task m
           where m.run_key = n.past_run and m.task_index = n.past_task and m.virtual_state not in ('success', 'skipped')
             and m.length > (select count(*) from task_instance t where t.run_key = m.run_key and t.task_index = m.task_index))
), gates as (
    insert into past_gate (run_key, task_index, missing)
    select run_key, task_index, count(*) from missing group by run_key, task_index
), watches as (
    insert into past_watch (run_key, task_index, waiter_run, waiter_task)
    select past_run, past_task, run_key, task_index from missing
)
insert into report (run_key, kind, epoch, payload)
select past_run, 'follow', 0, jsonb_build_object('tasks', jsonb_agg(distinct past_task)) from missing group by past_run
