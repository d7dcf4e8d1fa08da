-- Another step of a plan.
insert into scaling_step (fleet, plan, step, detail)
values (%(fleet)s, %(plan)s, %(step)s, %(detail)s::jsonb)
returning step_id, extract(epoch from at)::float8 as at
