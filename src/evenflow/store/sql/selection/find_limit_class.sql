-- The limit class of a pool, executor, queue, weight, task limit, aging and share, made if there is none; base_id is that of the
-- same without task limit, null where it is itself. One that is there is only read. Those that make one go one after the other
-- until they commit, for each may make several in an order of its own. An update that changes nothing answers the row also when
-- another has just made it.
with place as materialized (
    select p.limit_id as pool_limit, e.limit_id as executor_limit
    from concurrency_limit p, concurrency_limit e
    where p.run_key = 0 and p.kind = 'pool' and p.name = %(pool)s and e.run_key = 0 and e.kind = 'executor'
        and e.name = %(executor)s
), known as materialized (
    select class_id, base_id, pool_limit, executor_limit from place join limit_class using (pool_limit, executor_limit)
    where queue = %(queue)s::text and weight = %(weight)s::int and task_limit = %(task_limit)s::bigint
      and aging_s is not distinct from %(aging_s)s::int and share_id is not distinct from %(share_id)s::bigint
    union all
    select class_id, base_id, pool_limit, executor_limit from place join limit_class using (pool_limit, executor_limit)
    where queue = %(queue)s::text and weight = %(weight)s::int and task_limit is null and %(task_limit)s::bigint is null
      and aging_s is not distinct from %(aging_s)s::int and share_id is not distinct from %(share_id)s::bigint
), fresh as materialized (
    select pool_limit, executor_limit, nextval(pg_get_serial_sequence('limit_class', 'class_id')) as class_id,
        pg_advisory_xact_lock(7311146993655185)
    from place where not exists (select from known)
), made as (
    insert into limit_class (class_id, pool_limit, executor_limit, queue, weight, task_limit, base_id, aging_s, share_id)
    overriding system value
    select class_id, pool_limit, executor_limit, %(queue)s, %(weight)s, %(task_limit)s, coalesce(%(base_id)s::int, class_id),
        %(aging_s)s, %(share_id)s from fresh
    on conflict (pool_limit, executor_limit, queue, weight, task_limit, aging_s, share_id) do update set queue = excluded.queue
    returning class_id, base_id, pool_limit, executor_limit
)
select class_id, base_id, pool_limit, executor_limit from known
union all
select class_id, base_id, pool_limit, executor_limit from made
