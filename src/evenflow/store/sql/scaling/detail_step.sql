-- What a step that has begun is about to do.
update scaling_step set detail = detail || %(detail)s::jsonb where step_id = %(step_id)s
