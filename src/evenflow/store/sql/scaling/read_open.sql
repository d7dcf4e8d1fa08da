-- The steps of all plans of a fleet that have not ended, in the order in which they were begun.
select step_id, plan, step, detail, extract(epoch from at)::float8 as at, done_at is not null as done
from scaling_step
where open and fleet = %(fleet)s
order by plan, step_id
