-- These limit classes.
select class_id, base_id, pool_limit, executor_limit, queue, weight, task_limit, aging_s, share_id from limit_class
where class_id = any(%(limit_classes)s::int[])
