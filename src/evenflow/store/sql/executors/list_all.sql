-- Executors, or one of them: their queues and slots, and how many of these are taken. The columns of Executor.
select e.name, e.kind,
    array(select queue from unnest(e.queues) as queue where in_scope(%(scope)s::jsonb, 'queues', queue)) as queues,
    e.kind <> 'native' as push, e.options, l.capacity as slots, l.used, e.changed_at, e.changed_by
from executor e
join concurrency_limit l on l.run_key = 0 and l.kind = 'executor' and l.name = e.name
where (%(name)s::text is null or e.name = %(name)s)
  and (e.queues = '{}' or exists (select from unnest(e.queues) as queue where in_scope(%(scope)s::jsonb, 'queues', queue)))
order by e.name
