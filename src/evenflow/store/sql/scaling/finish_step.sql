-- A step is done, and what came of it.
update scaling_step set done_at = now(), detail = detail || %(detail)s::jsonb where step_id = %(step_id)s
