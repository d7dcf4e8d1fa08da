-- The limit class of a pool, executor, queue, weight and task limit, made if there is none; base_id is that of the same without task limit, null
-- where it is itself. An update that changes nothing answers the row also when another scheduler has just made it.
insert into limit_class (class_id, pool_limit, executor_limit, queue, weight, task_limit, base_id)
overriding system value
select fresh, p.limit_id, e.limit_id, %(queue)s::text, %(weight)s::int, %(task_limit)s::bigint, coalesce(%(base_id)s::int, fresh)
from concurrency_limit p, concurrency_limit e, nextval(pg_get_serial_sequence('limit_class', 'class_id')) as fresh
where p.run_key = 0 and p.kind = 'pool' and p.name = %(pool)s and e.run_key = 0 and e.kind = 'executor' and e.name = %(executor)s
on conflict (pool_limit, executor_limit, queue, weight, task_limit) do update set queue = excluded.queue
returning class_id, base_id, pool_limit, executor_limit
