-- The first step of a plan, which has its number. No row: there is no such fleet (any more). FOR KEY SHARE, as the reference of its
-- row would do it: a fleet that is about to be deleted is waited for, and then not found.
with named as materialized (
    select name from fleet where name = %(fleet)s for key share
), made as (
    select name, nextval(pg_get_serial_sequence('scaling_step', 'step_id')) as step_id from named
)
insert into scaling_step (step_id, plan, fleet, step, detail) overriding system value
select step_id, step_id, name, %(step)s, %(detail)s::jsonb from made
returning step_id, extract(epoch from at)::float8 as at
