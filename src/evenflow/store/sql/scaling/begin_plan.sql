-- The first step of a plan, which has its number.
with made as (
    select nextval(pg_get_serial_sequence('scaling_step', 'step_id')) as step_id
)
insert into scaling_step (step_id, plan, fleet, step, detail) overriding system value
select step_id, step_id, %(fleet)s, %(step)s, %(detail)s::jsonb from made
returning step_id, extract(epoch from at)::float8 as at
