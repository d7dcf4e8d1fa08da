-- What is ready waits for the slots of the executor that its queue has now, and what was sent to one that has it no more is there
-- for all again. Tries that began keep the slot that they hold. Under the executor's lock: no round knows limit classes meanwhile.
with wanted as materialized (
    select c.class_id, l.limit_id
    from limit_class c
    left join queue_executor q using (queue)
    join concurrency_limit l on l.run_key = 0 and l.kind = 'executor' and l.name = coalesce(q.executor, 'worker')
    where c.executor_limit <> l.limit_id
), moved as (
    update limit_class c set executor_limit = w.limit_id from wanted w where c.class_id = w.class_id
), called_back as (
    update dispatch d set sent_at = null, sends = null
    where d.worker_id is null and d.sent_at is not null
      and d.queue in (
          select s.queue from (select distinct queue from dispatch where worker_id is null and sent_at is not null) as s
          where not exists (select from queue_executor q where q.queue = s.queue and q.push))
)
insert into wake (limit_id, released) select distinct limit_id, 0 from wanted
